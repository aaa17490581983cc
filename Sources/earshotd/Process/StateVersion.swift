internal import EarshotSafety

/// The version of the daemon that last served a state directory, as a line in a file there. If an older version cannot read the store of a
/// later one, its error names the version to install.
struct StateVersion: Sendable {
    /// The state directory.
    let directory: String

    private static let name = try? SafeName("version")
    /// The most bytes that are read, far more than any version has.
    private static let limit = 64

    /// Reads the version; `nil` if there is none, as before 0.2.0.
    func read() -> String? {
        guard let name = Self.name, let file = try? SafeDirectory(path: self.directory).open(name),
            let bytes = try? file.bytes(at: 0, count: Self.limit)
        else { return nil }
        let line = String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
        return line.isEmpty ? nil : line
    }

    /// Writes the version, replacing an older one.
    func write(_ version: String) throws(FileError) {
        guard let name = Self.name, self.read() != version else { return }
        let file = try TemporaryFile(in: SafeDirectory(path: self.directory), mode: 0o600)
        try file.file.write(Array("\(version)\n".utf8), at: 0)
        _ = try file.publish(as: name, onConflict: .overwrite)
    }

    /// Returns the error if this version, `current`, cannot read the store; `message` has the cause.
    func refusal(_ message: String, current: String) -> String {
        guard let version = self.read(), version != current else { return message }
        return "\(message); earshotd \(version.escapedForDisplay) has served it last, and this is \(current)"
    }
}
