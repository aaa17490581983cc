internal import CLinux
package import EarshotSafety
internal import Glibc

/// Gives the entries of a written tree the permissions that their sender's had, where these take something from the owner.
///
/// Whoever wrote the tree could not go on in a directory that it may not enter, nor read a file back that it may not read: so that comes
/// last, shortly before the tree is given its name.
package enum TreePermissions {
    /// Below the root, from the bottom to the top; the root itself stays as it is, because a directory that may not be written to could
    /// not be moved either.
    /// - Throws: `file`.
    package static func apply(_ manifest: TreeManifest, to directory: SafeDirectory) throws(TreeError) {
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
                guard entry.mode & needed != needed else { continue }
                let parent = try root.open(entry.parent, of: manifest)
                guard entry.name.withCString({ fchmodat(parent, $0, mode_t(entry.mode), AT_SYMLINK_NOFOLLOW) }) == 0 else {
                    throw FileError("set the permissions of", root.subject(index, of: manifest))
                }
            }
        } catch {
            throw .file(error)
        }
    }

    /// The root, once it has its name.
    /// - Throws: `file`.
    package static func applyToRoot(_ manifest: TreeManifest, _ directory: SafeDirectory) throws(TreeError) {
        guard manifest[0].mode & 0o700 != 0o700 else { return }
        guard fchmod(directory.descriptor, mode_t(manifest[0].mode)) == 0 else {
            throw .file(FileError("set the permissions of", directory.path))
        }
    }
}
