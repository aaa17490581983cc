/// The place of a setting's value, in the order of precedence.
enum SettingOrigin: Sendable, Hashable, CustomStringConvertible {
    case flag(String)
    case environment(String)
    case file(path: String, line: Int)
    /// A variable by which a packaged unit sets a default of its own.
    case unit(String)
    /// No place: the default, for example the host name.
    case defaults

    /// The beginning of a message: `FILE:LINE`, `--flag` or `$VARIABLE`.
    var description: String {
        switch self {
        case .flag(let name): "--\(name)"
        case .environment(let name), .unit(let name): "$\(name)"
        case .file(let path, let line): "\(path):\(line)"
        case .defaults: "default"
        }
    }
}

/// An error in the settings: its place, what is wrong, and what would be right.
struct SettingsError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The place of the value; `nil` if the error concerns a whole file or a missing file.
    let origin: SettingOrigin?
    /// One lower-case sentence without a full stop.
    let message: String
    /// Whether the value was given on the command line, which makes it a usage error.
    let isUsage: Bool

    init(_ origin: SettingOrigin, _ message: String) {
        self.origin = origin
        self.message = message
        self.isUsage = if case .flag = origin { true } else { false }
    }

    /// Makes an error that concerns no single line or flag.
    init(_ message: String, isUsage: Bool = false) {
        self.origin = nil
        self.message = message
        self.isUsage = isUsage
    }

    /// The exit status of `sysexits.h`: 64 for a flag, 78 for a file or the environment; see earshotd(8).
    var exitCode: Int32 { self.isUsage ? 64 : 78 }

    var description: String { self.origin.map { "\($0): \(self.message)" } ?? self.message }
}
