import EarshotSafety
import EarshotWire
package import struct FoundationEssentials.Date

#if canImport(Glibc)
    import Glibc
#endif

/// Looking after the key: replacing it, and taking it out of the state directory.
extension Identity {
    /// How many identities that ended in one second are kept under names of their own.
    private static let keptInOneSecond = 1000

    /// Makes a new identity in a state directory. The one that was there is kept beside it, 0600, under the time at which it ended, with
    /// `-2`, `-3` and so on for the next ones of the same second. A second process that does the same at the same time waits: neither's key
    /// is lost.
    ///
    /// - Returns: the new one, and the path of the old one where there was any.
    /// - Throws: `storage`.
    package static func replace(in directory: String, now: Date) throws(EarshotError) -> (identity: Identity, kept: String?) {
        let path = directory + "/" + Self.fileName
        guard let owner = FileStatus(path: directory), owner.kind == .directory else {
            throw EarshotError(.storage, "there is no state directory \(directory.escapedForDisplay); give --state-directory")
        }
        let pem = try Self.makePEM()
        // On the directory itself, which the daemon's own lock, a file in it, leaves alone; it ends with the descriptor.
        let turn = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard turn >= 0 else {
            throw EarshotError(.storage, "cannot open \(directory.escapedForDisplay): \(FileError.reason(errno))")
        }
        defer { close(turn) }
        var locked = flock(turn, LOCK_EX)
        while locked != 0, errno == EINTR { locked = flock(turn, LOCK_EX) }
        guard locked == 0 else {
            throw EarshotError(.storage, "cannot lock \(directory.escapedForDisplay): \(FileError.reason(errno))")
        }
        let kept = FileStatus(path: path) == nil ? nil : try Self.keep(path, in: directory, now: now)
        do {
            try DurableFile.write(Array(pem.utf8), to: path)
        } catch {
            throw EarshotError(.storage, "cannot keep the identity in \(path.escapedForDisplay): \(error)", underlying: error)
        }
        // Root may do this for a service whose user reads the directory.
        if geteuid() == 0, owner.owner != 0 { _ = lchown(path, owner.owner, owner.group) }
        return (try Self.load(from: directory), kept)
    }

    /// Gives the identity that is about to end a second name, and returns that: at no moment is the key under no name.
    private static func keep(_ path: String, in directory: String, now: Date) throws(EarshotError) -> String {
        let first = directory + "/identity-\(Self.stamp(now))"
        var old = first + ".pem"
        var number = 1
        // A link, unlike a rename, replaces nothing.
        while link(path, old) != 0 {
            guard errno == EEXIST, number < Self.keptInOneSecond else { throw Self.cannotKeep(old) }
            number += 1
            old = first + "-\(number).pem"
        }
        // Not through a link that stands in its place: root may do this in another user's directory, and would change any file for it.
        guard fchmodat(AT_FDCWD, old, 0o600, AT_SYMLINK_NOFOLLOW) == 0 else {
            let failure = Self.cannotKeep(old)
            unlink(old)
            throw failure
        }
        return old
    }

    private static func cannotKeep(_ old: String) -> EarshotError {
        EarshotError(
            .storage, "cannot keep the old identity as \(old.escapedForDisplay): \(FileError.reason(errno)); nothing was changed")
    }

    /// The key and certificates of a state directory as PEM; `nil` where no identity was made.
    /// - Throws: `storage`, also for one that is damaged: a backup of that is of no use.
    package static func pem(in directory: String) throws(EarshotError) -> String? {
        guard try Self.existing(in: directory) != nil else { return nil }
        return try IdentityFile.read(directory + "/" + Self.fileName, "the identity", isSecret: true, followsLinks: false)
    }

    /// The same of a person's own, in one text.
    package static func pem(certificate: String, privateKey: String) throws(EarshotError) -> String {
        let key = try IdentityFile.read(privateKey, "the private key", isSecret: true, followsLinks: true) ?? ""
        guard certificate != privateKey else { return key }
        return key + (try IdentityFile.read(certificate, "the certificate", isSecret: false, followsLinks: true) ?? "")
    }

    /// Such as `20261121T100000Z`.
    private static func stamp(_ date: Date) -> String {
        let text: String = date.formatted(.iso8601)
        return String(text.unicodeScalars.filter { $0 != "-" && $0 != ":" })
    }
}
