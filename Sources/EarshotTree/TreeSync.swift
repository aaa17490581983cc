package import EarshotSafety
internal import Glibc

/// Brings a written tree to disk entry by entry, where one call for the whole file system does not.
///
/// The kernel has syncfs(2) wait for its own file systems. Of those in user space (FUSE), such as mergerfs, gocryptfs and sshfs, it asks nothing
/// then, and of eCryptfs no more than to hand on what is written to the file system below, which keeps it in memory: what they do not save by
/// themselves is lost with the power. fsync(2) reaches all of them.
package enum TreeSync {
    /// Waits until the entries are on disk, where that is not done by syncfs(2), which follows. Before `TreePermissions`: a file that its owner
    /// may not read could not be opened for it.
    /// - Throws: `file`.
    package static func sync(_ manifest: TreeManifest, in directory: SafeDirectory) throws(TreeError) {
        if directory.isSavedByEntry { try Self.syncEach(of: manifest, in: directory) }
    }

    /// The same on any file system.
    static func syncEach(of manifest: TreeManifest, in directory: SafeDirectory) throws(TreeError) {
        let root = TreeRoot(directory)
        do throws(FileError) {
            // What is in a directory comes behind it in the list, and before it to disk.
            for index in (1..<max(manifest.count, 1)).reversed() {
                let entry = manifest[index]
                switch entry.content {
                case .directory:
                    let descriptor = try root.open(index, of: manifest)
                    // As `SafeDirectory.sync`.
                    guard fsync(descriptor) == 0 || errno == EINVAL else { throw FileError("save", root.subject(index, of: manifest)) }
                case .file, .sparse:
                    let parent = try root.open(entry.parent, of: manifest)
                    let descriptor = entry.name.withCString { openat(parent, $0, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) }
                    guard descriptor >= 0 else { throw FileError("open", root.subject(index, of: manifest)) }
                    let file = OpenFile(descriptor: descriptor, subject: root.subject(index, of: manifest))
                    try file.sync()
                case .link: break  // Its directory has it.
                }
            }
            try directory.sync()
        } catch {
            throw .file(error)
        }
    }
}
