import Foundation

/// This machine, for code from Apple's systems that needs its name.
public final class UIDevice: Sendable {
    /// This machine.
    public static let current = UIDevice()

    private init() {}

    /// The host name.
    public var name: String { ProcessInfo.processInfo.hostName }
}
