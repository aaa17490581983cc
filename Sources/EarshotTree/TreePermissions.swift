internal import CLinux
package import EarshotSafety
internal import Glibc

/// Sets the permissions of the entries of a written tree to the sender's, if these restrict the owner. For a shared directory, adds the
/// group's permissions.
///
/// The writer of a tree could not continue in a directory that it may not enter, nor read back a file that it may not read. This step
/// therefore comes last, shortly before the tree gets its name.
package enum TreePermissions {
    /// A group that a tree is shared with.
    package struct Sharing: Sendable, Hashable {
        /// The group's id.
        let group: UInt32
        /// The group's permissions in the directory: bits of `0o070`.
        let rights: UInt16

        /// Creates the sharing with the group that a directory passes on to new entries: one with the set-group-id bit (inode(7)). `nil`
        /// for any other directory.
        package init?(of directory: FileStatus) {
            guard directory.mode & 0o2000 != 0 else { return nil }
            self.group = directory.group
            self.rights = UInt16(directory.mode & 0o070)
        }

        /// Returns an entry's permissions with those of the group. Read and write permissions follow the directory's. Execute permission
        /// covers directories, and files that their owner may execute.
        func mode(_ mode: UInt16, isDirectory: Bool) -> UInt16 {
            let execution: UInt16 = isDirectory || mode & 0o100 != 0 ? 0o010 : 0
            return mode | self.rights & (0o060 | execution)
        }
    }

    /// Sets the permissions below the root, from the bottom to the top. The root is left unchanged, because a directory that is not
    /// writable could not be moved.
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
                // A link has no permissions of its own, and its group does not matter.
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

    /// Sets the permissions of the root, once it has its name.
    /// - Throws: `file`.
    package static func applyToRoot(
        _ manifest: TreeManifest, _ directory: SafeDirectory, sharing: Sharing? = nil
    ) throws(TreeError) {
        guard manifest[0].mode & 0o700 != 0o700 || sharing != nil else { return }
        // Works only for a group that this user belongs to. Nothing depends on it.
        if let sharing { _ = fchown(directory.descriptor, uid_t.max, sharing.group) }
        let mode = sharing?.mode(manifest[0].mode, isDirectory: true) ?? manifest[0].mode
        guard fchmod(directory.descriptor, mode_t(mode)) == 0 || FileError.keepsNoPermissions(errno) else {
            throw .file(FileError("set the permissions of", directory.path))
        }
    }
}
