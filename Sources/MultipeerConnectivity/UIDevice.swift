import Foundation

/// This machine, as far as code that was written for Apple's systems asks for its name.
public final class UIDevice: Sendable {
    /// This machine.
    public static let current = UIDevice()

    private init() {}

    /// The host's name.
    public var name: String { ProcessInfo.processInfo.hostName }
}
