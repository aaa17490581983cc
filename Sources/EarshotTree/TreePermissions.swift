internal import CLinux
package import EarshotSafety
internal import Glibc

/// Gives the entries of a written tree the permissions that their sender's had, where these take something from the owner; and to a group
/// what a directory that is shared with it has for it.
///
/// The writer of the tree could not go on in a directory that it may not enter, nor read a file back that it may not read: so that comes
/// last, shortly before the tree is given its name.
package enum TreePermissions {
    /// A group with which a tree is shared.
    package struct Sharing: Sendable, Hashable {
        /// The group's number.
        let group: UInt32
        /// What it may do in the directory: bits of `0o070`.
        let rights: UInt16

        /// With the group that a directory hands on to what is made in it: one with the set-group-id bit (inode(7)); `nil` of any other.
        package init?(of directory: FileStatus) {
            guard directory.mode & 0o2000 != 0 else { return nil }
            self.group = directory.group
            self.rights = UInt16(directory.mode & 0o070)
        }

        /// An entry's permissions with those of the group: who may read and write may do so; who may enter directories, and execute what its
        /// owner may execute.
        func mode(_ mode: UInt16, isDirectory: Bool) -> UInt16 {
            let execution: UInt16 = isDirectory || mode & 0o100 != 0 ? 0o010 : 0
            return mode | self.rights & (0o060 | execution)
        }
    }

    /// Below the root, from the bottom to the top; the root itself stays as it is, because a directory that may not be written to could
    /// not be moved either.
    /// - Throws: `file`.
    package static func apply(_ manifest: TreeManifest, to directory: SafeDirectory, sharing: Sharing? = nil) throws(TreeError) {
        let root = TreeRoot(directory)
        do throws(FileError) {
            for index in (1..<max(manifest.count, 1)).reversed() {
                let entry = manifest[index]
                let needed: UInt16 =
                    switch entry.content {
                    case .directory: 0o700
                    case .file, .sparse: 0o600
                    case .link: 0
                    }
                // A link has none of its own; its group does not matter.
                let shared = needed == 0 ? nil : sharing
                guard entry.mode & needed != needed || shared != nil else { continue }
                let parent = try root.open(entry.parent, of: manifest)
                let mode = shared?.mode(entry.mode, isDirectory: needed == 0o700) ?? entry.mode
                if let shared { _ = entry.name.withCString { fchownat(parent, $0, uid_t.max, shared.group, AT_SYMLINK_NOFOLLOW) } }
                let isSet = entry.name.withCString { fchmodat(parent, $0, mode_t(mode), AT_SYMLINK_NOFOLLOW) } == 0
                guard isSet || FileError.keepsNoPermissions(errno) else {
                    throw FileError("set the permissions of", root.subject(index, of: manifest))
                }
            }
        } catch {
            throw .file(error)
        }
    }

    /// The root, once it has its name.
    /// - Throws: `file`.
    package static func applyToRoot(
        _ manifest: TreeManifest, _ directory: SafeDirectory, sharing: Sharing? = nil
    ) throws(TreeError) {
        guard manifest[0].mode & 0o700 != 0o700 || sharing != nil else { return }
        // Only into a group of one's own; nothing depends on it.
        if let sharing { _ = fchown(directory.descriptor, uid_t.max, sharing.group) }
        let mode = sharing?.mode(manifest[0].mode, isDirectory: true) ?? manifest[0].mode
        guard fchmod(directory.descriptor, mode_t(mode)) == 0 || FileError.keepsNoPermissions(errno) else {
            throw .file(FileError("set the permissions of", directory.path))
        }
    }
}
