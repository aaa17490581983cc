internal import EarshotSafety
internal import Glibc

/// Reads the settings file and its drop-ins: `earshotd.conf`, then `earshotd.conf.d/*.conf` in the order of their names.
enum SettingsFiles {
    /// The highest number of drop-ins, far above any real number.
    static let dropInLimit = 256
    /// The name of the drop-in that `earshot config` writes.
    static let commandDropIn = "50-cli.conf"

    /// Returns the contents of a file; the result exceeds the limit if the file does. Returns `nil` if the file is missing and may be.
    static func read(_ path: String, mustExist: Bool) throws(SettingsError) -> [UInt8]? {
        let shown = path.escapedForDisplay
        guard !path.utf8.contains(0) else { throw SettingsError("\(shown) is not a path") }
        // Opened without blocking: a FIFO at the path must not hang the start.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            let code = errno
            if !mustExist && (code == ENOENT || code == ENOTDIR) { return nil }
            throw Self.unreadable(path, code)
        }
        defer { close(descriptor) }
        guard FileStatus(descriptor: descriptor)?.kind == .regular || self.isNull(path) else {
            throw SettingsError("\(shown) is not a regular file")
        }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 64 * 1024)
        while bytes.count <= INIFile.byteLimit {
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { throw Self.unreadable(path, errno) }
            if count == 0 { break }
            bytes.append(contentsOf: chunk[..<count])
        }
        return bytes
    }

    /// Returns the drop-ins of a settings file, which itself may be missing: the files of `FILE.d` that end in `.conf`, sorted by the bytes
    /// of their names, without hidden files, as in systemd. `added` is the name of a drop-in that is listed even if there is none.
    static func dropIns(of path: String, including added: String? = nil) throws(SettingsError) -> [String] {
        let place = path + ".d"
        let names = try self.dropIns(in: place).union(added.map { [$0] } ?? [])
        guard names.count <= Self.dropInLimit else {
            throw SettingsError("\(place.escapedForDisplay) holds more than \(Self.dropInLimit) drop-ins; put some into one file")
        }
        return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }.map { "\(place)/\($0)" }
    }

    private static func dropIns(in place: String) throws(SettingsError) -> Set<String> {
        guard !place.utf8.contains(0) else { return [] }
        guard let directory = opendir(place) else {
            let code = errno
            guard code == ENOENT || code == ENOTDIR else { throw Self.unreadable(place, code) }
            return []
        }
        defer { closedir(directory) }
        var names: Set<String> = []
        while true {
            errno = 0
            guard let entry = readdir(directory) else { break }
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: Int(NAME_MAX) + 1) { String(validatingCString: $0) }
            }
            // A name that is not UTF-8 cannot appear in a message, and is hardly intended.
            guard let name, name.hasSuffix(".conf"), !name.hasPrefix(".") else { continue }
            names.insert(name)
            // One more than allowed is enough to report.
            guard names.count <= Self.dropInLimit else { return names }
        }
        guard errno == 0 else { throw Self.unreadable(place, errno) }
        return names
    }

    /// Whether the path is `/dev/null` or a link to it, which is systemd's way to mask a file.
    private static func isNull(_ path: String) -> Bool { self.resolved(path) == "/dev/null" }

    /// Returns a path with all links resolved, or `nil` if its target does not exist or may not be looked up.
    static func resolved(_ path: String) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    private static func unreadable(_ path: String, _ code: CInt) -> SettingsError {
        SettingsError("cannot read \(path.escapedForDisplay): \(String(cString: strerror(code)).lowercased())")
    }
}
