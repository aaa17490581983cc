import EarshotSafety
import EarshotWire
package import struct FoundationEssentials.Date

#if canImport(Glibc)
    import Glibc
#endif

/// Replacing the key, and exporting it from the state directory.
extension Identity {
    /// The maximum number of old identities from the same second that are kept.
    private static let keptInOneSecond = 1000

    /// Creates a new identity in a state directory. The previous one is kept beside it (mode 0600). Its name contains the time of
    /// replacement, with the suffix `-2`, `-3` and so on for further ones in the same second. Concurrent processes wait for each other, so
    /// that neither key is lost.
    ///
    /// - Returns: The new identity, and the path of the previous one if there was any.
    /// - Throws: `storage`.
    package static func replace(in directory: String, now: Date) throws(EarshotError) -> (identity: Identity, kept: String?) {
        let path = directory + "/" + Self.fileName
        guard let owner = FileStatus(path: directory), owner.kind == .directory else {
            throw EarshotError(.storage, "there is no state directory \(directory.escapedForDisplay); give --state-directory")
        }
        let pem = try Self.makePEM()
        // Locks the directory itself. The daemon's lock is a file in it, so the two are independent. This lock ends with the descriptor.
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
        // Root may do this for a service with another user, which has to read the file.
        if geteuid() == 0, owner.owner != 0 { _ = lchown(path, owner.owner, owner.group) }
        return (try Self.load(from: directory), kept)
    }

    /// Gives the identity that is about to be replaced a second name, and returns that. The key has a name at all times.
    private static func keep(_ path: String, in directory: String, now: Date) throws(EarshotError) -> String {
        let first = directory + "/identity-\(Self.stamp(now))"
        var old = first + ".pem"
        var number = 1
        // A link, unlike a rename, never replaces a file.
        while link(path, old) != 0 {
            guard errno == EEXIST, number < Self.keptInOneSecond else { throw Self.cannotKeep(old) }
            number += 1
            old = first + "-\(number).pem"
        }
        // Does not follow a symbolic link at this path. Root may do this in another user's directory, and would otherwise change any file
        // for that user.
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

    /// Returns the key and certificates of a state directory as PEM; `nil` if there is no identity.
    /// - Throws: `storage`, also for a damaged identity, because a backup of it would be useless.
    package static func pem(in directory: String) throws(EarshotError) -> String? {
        guard try Self.existing(in: directory) != nil else { return nil }
        return try IdentityFile.read(directory + "/" + Self.fileName, "the identity", isSecret: true, followsLinks: false)
    }

    /// Returns the user's own key and certificates as one PEM text.
    package static func pem(certificate: String, privateKey: String) throws(EarshotError) -> String {
        let key = try IdentityFile.read(privateKey, "the private key", isSecret: true, followsLinks: true) ?? ""
        guard certificate != privateKey else { return key }
        return key + (try IdentityFile.read(certificate, "the certificate", isSecret: false, followsLinks: true) ?? "")
    }

    /// Returns the time as text, such as `20261121T100000Z`.
    private static func stamp(_ date: Date) -> String {
        let text: String = date.formatted(.iso8601)
        return String(text.unicodeScalars.filter { $0 != "-" && $0 != ":" })
    }
}
