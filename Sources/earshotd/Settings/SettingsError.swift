/// Where a setting's value came from; the higher layers win in this order.
enum SettingOrigin: Sendable, Hashable, CustomStringConvertible {
    case flag(String)
    case environment(String)
    case file(path: String, line: Int)
    /// A variable by which a packaged unit gives a default of its own.
    case unit(String)
    /// The places outside those three, such as the host name.
    case defaults

    /// How a message begins: `FILE:LINE`, `--flag`, `$VARIABLE`.
    var description: String {
        switch self {
        case .flag(let name): "--\(name)"
        case .environment(let name), .unit(let name): "$\(name)"
        case .file(let path, let line): "\(path):\(line)"
        case .defaults: "default"
        }
    }
}

/// A setting that cannot be used: where it stands, what is wrong, and what would be right.
struct SettingsError: Error, Sendable, Hashable, CustomStringConvertible {
    /// Where the value stands; `nil` when it is about a whole file or a missing one.
    let origin: SettingOrigin?
    /// One lower-case sentence without a full stop.
    let message: String
    /// Whether the person typed it just now, which makes it a usage error.
    let isUsage: Bool

    init(_ origin: SettingOrigin, _ message: String) {
        self.origin = origin
        self.message = message
        self.isUsage = if case .flag = origin { true } else { false }
    }

    /// An error that no single line or flag is to blame for.
    init(_ message: String, isUsage: Bool = false) {
        self.origin = nil
        self.message = message
        self.isUsage = isUsage
    }

    /// `sysexits.h`: 64 for a flag, 78 for a file or the environment: "Exit status" of earshotd(8).
    var exitCode: Int32 { self.isUsage ? 64 : 78 }

    var description: String { self.origin.map { "\($0): \(self.message)" } ?? self.message }
}
