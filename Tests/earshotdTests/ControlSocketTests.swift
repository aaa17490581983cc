import Foundation
import Glibc
import Testing

@testable import earshotd

@Suite struct ControlSocketTests {
    private struct Access: Equatable {
        let group: Int?
        let mode: Int?

        init(_ path: String) throws {
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            self.group = (attributes[.groupOwnerAccountID] as? NSNumber)?.intValue
            self.mode = (attributes[.posixPermissions] as? NSNumber)?.intValue
        }
    }

    private func open(in directory: String, ownDirectory: String?) throws -> (directory: Access, socket: Access) {
        let path = "\(directory)/s"
        let socket = try ControlSocket.claim(path, ownDirectory: ownDirectory)
        // Only its owner, group and mode are of interest here.
        try Data().write(to: URL(fileURLWithPath: path))
        // A group that is not root's own: bin.
        try socket.open(to: 2)
        defer { socket.remove() }
        return (try Access(directory), try Access(path))
    }

    /// Somebody emptied the directory, and a newer daemon serves a socket of its own there: the end of the older one leaves that alone.
    @Test func theEndOfAnOlderDaemonLeavesANewerSocket() throws {
        let directory = "\(NSTemporaryDirectory())earshotd-\(UUID().uuidString)"
        let path = "\(directory)/s"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let older = try ControlSocket.claim(path)
        try Data().write(to: URL(fileURLWithPath: path))
        try FileManager.default.removeItem(atPath: directory)
        // Without a lock file nobody knows whose the socket is.
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        try Data().write(to: URL(fileURLWithPath: path))
        older.remove()
        #expect(FileManager.default.fileExists(atPath: path))
        try FileManager.default.removeItem(atPath: path)
        let newer = try ControlSocket.claim(path)
        try Data().write(to: URL(fileURLWithPath: path))
        older.remove()
        #expect(FileManager.default.fileExists(atPath: path))
        newer.remove()
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    /// The packaged service sees every place that is not its own as read-only.
    @Test func aReadOnlyPlaceSaysWhatAUnitNeeds() {
        #expect(ControlSocket.remedy(EROFS).contains("ReadWritePaths in its unit"))
        let error = #expect(throws: SocketError.self) { try ControlSocket.claim("/dev/null/here/s") }
        #expect(error?.description == "cannot make the directory /dev/null/here: not a directory; give another --socket")
    }

    /// The packaged service's directory is its group's alone: another group that may use the socket has to get that far.
    @Test(.enabled(if: geteuid() == 0, "skipped: only root may give a file to any group"))
    func theGroupGetsThroughADirectoryThatWasMadeForTheSocket() throws {
        let directory = "\(NSTemporaryDirectory())earshotd-\(UUID().uuidString)"
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o750])
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let elsewhere = try self.open(in: directory, ownDirectory: "/run/earshot")
        #expect(elsewhere.directory.group == Int(getegid()) && elsewhere.socket.group == 2)
        let own = try self.open(in: directory, ownDirectory: directory)
        #expect(own.directory.group == 2 && own.directory.mode == 0o750)
        #expect(own.socket.group == 2 && own.socket.mode == 0o660)
    }
}
