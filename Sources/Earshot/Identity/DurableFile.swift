#if canImport(Glibc)
    import Glibc
#endif

/// Writes a small file atomically: after a crash, the file is either complete or unchanged.
package enum DurableFile {
    package struct Failure: Error, CustomStringConvertible {
        package let description: String

        init(_ step: String) {
            self.description = "\(step): \(String(cString: strerror(errno)))"
        }
    }

    /// Writes to a temporary name, syncs, renames over `path`, syncs the directory. The file's mode is 0600.
    package static func write(_ bytes: [UInt8], to path: String) throws(Failure) {
        let temporary = path + ".new"
        unlink(temporary)
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw Failure("cannot create \(temporary)") }
        defer { close(descriptor) }
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                let failure = Failure("cannot write \(temporary)")
                unlink(temporary)
                throw failure
            }
            rest = rest.dropFirst(count)
        }
        guard fsync(descriptor) == 0, rename(temporary, path) == 0 else {
            let failure = Failure("cannot publish \(path)")
            unlink(temporary)
            throw failure
        }
        let directory = open(
            path.split(separator: "/").dropLast().reduce(path.hasPrefix("/") ? "/" : "./") { $0 + $1 + "/" }, O_RDONLY | O_CLOEXEC)
        guard directory >= 0 else { throw Failure("cannot open the directory of \(path)") }
        defer { close(directory) }
        guard fsync(directory) == 0 else { throw Failure("cannot sync the directory of \(path)") }
    }
}
