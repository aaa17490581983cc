import Earshot
import Foundation

/// The private keys of archived peer ids, each in a file that no other user can read.
enum KeyFiles {
    /// The directory of the keys, according to the XDG Base Directory Specification.
    static var directory: URL {
        let environment = ProcessInfo.processInfo.environment
        let state = environment["XDG_STATE_HOME"].flatMap { $0.hasPrefix("/") ? URL(fileURLWithPath: $0) : nil }
        let base = state ?? FileManager.default.homeDirectoryForCurrentUser.appendingPathComponent(".local/state")
        return base.appendingPathComponent("earshot/multipeer")
    }

    private static func file(of id: PeerID) -> URL { self.directory.appendingPathComponent("\(id).pem") }

    /// Returns the key of a peer; `nil` if there is none, or if others may read it.
    static func pem(of id: PeerID) -> String? {
        let file = self.file(of: id)
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: file.path),
            attributes[.type] as? FileAttributeType == .typeRegular,
            let mode = attributes[.posixPermissions] as? NSNumber, mode.intValue & 0o077 == 0
        else { return nil }
        return try? String(contentsOf: file, encoding: .utf8)
    }

    /// Stores a key, unless it exists. The file is synced and appears atomically.
    static func keep(_ pem: String, of id: PeerID) throws {
        guard self.pem(of: id) == nil else { return }
        try FileManager.default.createDirectory(
            at: self.directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let part = self.directory.appendingPathComponent(".\(id).\(UUID().uuidString)")
        let descriptor = open(part.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Self.failure(part) }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        do {
            try handle.write(contentsOf: Data(pem.utf8))
            guard fsync(descriptor) == 0, rename(part.path, self.file(of: id).path) == 0 else { throw Self.failure(part) }
        } catch {
            unlink(part.path)
            throw error
        }
        let directory = open(self.directory.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { throw Self.failure(self.directory) }
        defer { close(directory) }
        guard fsync(directory) == 0 else { throw Self.failure(self.directory) }
    }

    private static func failure(_ place: URL) -> NSError {
        NSError(domain: NSPOSIXErrorDomain, code: Int(errno), userInfo: [NSFilePathErrorKey: place.path])
    }
}
