import EarshotSafety

#if canImport(Glibc)
    import Glibc
#endif

/// Reads the small files that identities are made of.
enum IdentityFile {
    /// The largest file that is read, in bytes; a chain of several certificates has a few thousand.
    static let limit = 64 * 1024

    /// The whole of a file, which errors call `what`; `nil` where there is none.
    ///
    /// Only its owner may read one that `isSecret`. A link may stand in its place where a person has named it, as certificate tools
    /// do, but not in our own directory.
    /// - Throws: `storage`, in words for a person.
    static func read(_ path: String, _ what: String, isSecret: Bool, followsLinks: Bool) throws(EarshotError) -> String? {
        let shown = path.escapedForDisplay
        // Not blocking: a FIFO in its place must not hang the start.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (followsLinks ? 0 : O_NOFOLLOW))
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw EarshotError(.storage, "cannot read \(what) \(shown): \(FileError.reason(errno))")
        }
        defer { close(descriptor) }
        guard let status = FileStatus(descriptor: descriptor), status.kind == .regular, status.size <= UInt64(Self.limit) else {
            throw EarshotError(.storage, "\(what) \(shown) is not an ordinary small file")
        }
        guard !isSecret || status.mode & 0o077 == 0 else {
            throw EarshotError(.storage, "others may read \(what) \(shown); run chmod 600 on it, and make a new one if they have")
        }
        var bytes = [UInt8](repeating: 0, count: Int(status.size))
        let count = bytes.withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress, $0.count) }
        guard count == bytes.count else { throw EarshotError(.storage, "cannot read \(what) \(shown) whole") }
        return String(decoding: bytes, as: UTF8.self)
    }
}
