internal import CLinux
internal import EarshotSafety
internal import Glibc

/// Reserves a state directory for one process, with a lock on the file `lock` in it. The lock ends with the process, however the process
/// ends.
///
/// The file contains the process id, for the error message of a second daemon. Only the lock is decisive, not the text.
package final class StateLock: Sendable {
    /// The name of the lock file in the state directory.
    package static let fileName = "lock"

    private let file: OpenFile

    /// Acquires the lock. A missing directory is created (mode 0700).
    /// - Throws: `conflict` with the process id of the holder.
    package init(directory: String) throws(EarshotError) {
        do {
            let opened = try SafeDirectory(path: directory, create: 0o700)
            guard let name = try? SafeName(Self.fileName) else { throw FileError("lock", directory, code: EINVAL) }
            let file = try opened.open(name, flags: OpenFile.readWrite | OpenFile.create, mode: 0o600)
            self.file = file
            guard earshot_lock_file(file.descriptor) == 0 else {
                let code = errno
                guard code == EAGAIN || code == EACCES else { throw FileError("lock", file.subject, code: code) }
                throw Taken(process: try Self.process(in: file))
            }
            guard ftruncate(file.descriptor, 0) == 0 else { throw FileError("write to", file.subject) }
            try file.write(Array("\(getpid())\n".utf8), at: 0)
        } catch let error as Taken {
            let holder = error.process.map { "the process \($0)" } ?? "another process"
            throw EarshotError(
                .conflict, "\(holder) uses the state directory \(directory.escapedForDisplay); stop it, or use another --state-directory")
        } catch let error as FileError {
            throw EarshotError(error.isNoSpace ? .noSpace : .storage, "\(error)", underlying: error)
        } catch {
            throw EarshotError(.storage, "cannot lock \(directory.escapedForDisplay)", underlying: error)
        }
    }

    private struct Taken: Error {
        let process: Int?
    }

    private static func process(in file: OpenFile) throws(FileError) -> Int? {
        let bytes = try file.bytes(at: 0, count: 32)
        return Int(String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self))
    }
}
