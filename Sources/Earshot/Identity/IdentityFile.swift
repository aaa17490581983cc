import EarshotSafety

#if canImport(Glibc)
    import Glibc
#endif

/// Reads the small files of identities.
package enum IdentityFile {
    /// The maximum size of a file, in bytes. A chain of several certificates has a few thousand.
    static let limit = 64 * 1024

    /// Returns the content of a file, which errors call `what`; `nil` if there is none.
    ///
    /// If `isSecret`, only its owner may be able to read the file. Links are followed for paths from the user, because certificate tools
    /// use them, but not in the state directory.
    /// - Throws: `storage`, with a message for the user.
    package static func read(_ path: String, _ what: String, isSecret: Bool, followsLinks: Bool) throws(EarshotError) -> String? {
        let shown = path.escapedForDisplay
        // Non-blocking, so that a FIFO at this path cannot block the start.
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
