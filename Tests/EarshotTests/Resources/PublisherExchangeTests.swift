import EarshotSafety
import Glibc
import Testing

@testable import Earshot

/// Replacing a directory as its owner, for whom permissions apply.
@Suite struct PublisherExchangeTests {
    @Test(arguments: [mode_t(0o755), 0o555, 0o000]) func aDirectoryIsReplacedWhateverItsPermissions(_ mode: mode_t) throws {
        let state = try StateDirectory()
        for path in ["spool", "spool/new", "received", "received/photos"] {
            #expect(mkdir("\(state.path)/\(path)", 0o700) == 0)
            if geteuid() == 0 { #expect(chown("\(state.path)/\(path)", 65534, 65534) == 0) }
        }
        #expect(chmod("\(state.path)/received/photos", mode) == 0)
        let (spool, received) = try (SafeDirectory(path: "\(state.path)/spool"), SafeDirectory(path: "\(state.path)/received"))
        let (new, photos) = try (SafeName("new"), SafeName("photos"))
        let inode = try spool.status(of: new)?.inode
        // Until then, only this thread acts as an ordinary user.
        let before = setFileSystemUser(65534)
        defer { _ = setFileSystemUser(uid_t(before)) }
        try Publisher.exchange(new, of: spool, with: photos, in: received)
        #expect(try received.status(of: photos)?.inode == inode)
    }
}

/// setfsuid(2), which Swift's Glibc module lacks.
@_silgen_name("setfsuid")
private func setFileSystemUser(_ user: uid_t) -> CInt
