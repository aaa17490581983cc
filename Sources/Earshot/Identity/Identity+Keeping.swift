import EarshotSafety
import EarshotWire
package import struct FoundationEssentials.Date

#if canImport(Glibc)
    import Glibc
#endif

/// Looking after the key: replacing it, and taking it out of the state directory.
extension Identity {
    /// Makes a new identity in a state directory. The one that was there is kept beside it, 0600, under the time at which it ended.
    ///
    /// - Returns: the new one, and the path of the old one where there was any.
    /// - Throws: `storage`.
    package static func replace(in directory: String, now: Date) throws(EarshotError) -> (identity: Identity, kept: String?) {
        let path = directory + "/" + Self.fileName
        guard let owner = FileStatus(path: directory), owner.kind == .directory else {
            throw EarshotError(.storage, "there is no state directory \(directory.escapedForDisplay); give --state-directory")
        }
        let pem = try Self.make()
        var kept: String?
        if FileStatus(path: path) != nil {
            let old = directory + "/identity-\(Self.stamp(now)).pem"
            // A second name for the same file, and it fails where there is such a file: at no moment is the key under no name.
            guard link(path, old) == 0, chmod(old, 0o600) == 0 else {
                throw EarshotError(
                    .storage,
                    "cannot keep the old identity as \(old.escapedForDisplay): \(String(cString: strerror(errno))); nothing was changed")
            }
            kept = old
        }
        do {
            try DurableFile.write(Array(pem.utf8), to: path)
        } catch {
            throw EarshotError(.storage, "cannot keep the identity in \(path.escapedForDisplay): \(error)", underlying: error)
        }
        // Root may do this for a service whose user reads the directory.
        if geteuid() == 0, owner.owner != 0 { _ = lchown(path, owner.owner, owner.group) }
        return (try Self.load(from: directory), kept)
    }

    /// The key and certificates of a state directory as PEM; `nil` where no identity was made.
    /// - Throws: `storage`, also for one that is damaged: a backup of that helps nobody.
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
