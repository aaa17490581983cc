package import EarshotSafety
internal import Glibc

/// Syncs a written tree to disk entry by entry, if one call for the whole file system is not enough.
///
/// For its own file systems, the kernel's syncfs(2) waits. File systems in user space (FUSE), such as mergerfs, gocryptfs and sshfs, are
/// not asked at all, and eCryptfs only passes written data to the file system below, which keeps it in memory. A power failure loses data
/// that they have not saved on their own. fsync(2) reaches all of them.
package enum TreeSync {
    /// Waits until the entries are on disk, unless the following syncfs(2) does that. Must run before `TreePermissions`, because a file
    /// that its owner may not read could not be opened.
    /// - Throws: `file`.
    package static func sync(_ manifest: TreeManifest, in directory: SafeDirectory) throws(TreeError) {
        if directory.isSavedByEntry { try Self.syncEach(of: manifest, in: directory) }
    }

    /// Syncs each entry, on any file system.
    static func syncEach(of manifest: TreeManifest, in directory: SafeDirectory) throws(TreeError) {
        let root = TreeRoot(directory)
        do throws(FileError) {
            // In reverse order: the entries of a directory follow it in the list, and are synced before it.
            for index in (1..<max(manifest.count, 1)).reversed() {
                let entry = manifest[index]
                switch entry.content {
                case .directory:
                    let descriptor = try root.open(index, of: manifest)
                    // Ignores EINVAL like `SafeDirectory.sync`.
                    guard fsync(descriptor) == 0 || errno == EINVAL else { throw FileError("save", root.subject(index, of: manifest)) }
                case .file, .sparse:
                    let parent = try root.open(entry.parent, of: manifest)
                    let descriptor = entry.name.withCString { openat(parent, $0, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) }
                    guard descriptor >= 0 else { throw FileError("open", root.subject(index, of: manifest)) }
                    let file = OpenFile(descriptor: descriptor, subject: root.subject(index, of: manifest))
                    try file.sync()
                case .link: break  // A link is saved with its directory.
                }
            }
            try directory.sync()
        } catch {
            throw .file(error)
        }
    }
}
