internal import EarshotSafety

/// Which version of the daemon has served a state directory last, as a line in it: a version that cannot read the store which a later one
/// has left says by this what to install.
struct StateVersion: Sendable {
    /// The state directory.
    let directory: String

    private static let name = try? SafeName("version")
    /// Bytes: far more than any version has.
    private static let limit = 64

    /// The version that is written there; `nil` where none is, as before 0.2.0.
    func read() -> String? {
        guard let name = Self.name, let file = try? SafeDirectory(path: self.directory).open(name),
            let bytes = try? file.bytes(at: 0, count: Self.limit)
        else { return nil }
        let line = String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
        return line.isEmpty ? nil : line
    }

    /// Writes a version there, in place of another.
    func write(_ version: String) throws(FileError) {
        guard let name = Self.name, self.read() != version else { return }
        let file = try TemporaryFile(in: SafeDirectory(path: self.directory), mode: 0o600)
        try file.file.write(Array("\(version)\n".utf8), at: 0)
        _ = try file.publish(as: name, onConflict: .overwrite)
    }

    /// What a person is told where this version, `current`, cannot read the store, as `message` says.
    func refusal(_ message: String, current: String) -> String {
        guard let version = self.read(), version != current else { return message }
        return "\(message); earshotd \(version.escapedForDisplay) has served it last, and this is \(current)"
    }
}
