internal import CLinux
package import EarshotSafety
internal import Glibc

/// Walks a directory that is to be sent, and builds its manifest.
///
/// All work is done below the root's descriptor, directory by directory, and no link is followed. An entry that is replaced during the walk
/// is detected, and never leads out of the root. Named pipes, sockets, devices and unreadable entries are refused: a copy that lacks some
/// files would look complete.
package struct TreeScanner {
    /// A directory as it was during the walk.
    package struct Scan: Sendable {
        /// The entries of the directory.
        package let manifest: TreeManifest
        /// The identity of each entry's file; 0 for entries that are no files.
        let identities: [FileStatus.Identity]
    }

    private let root: TreeRoot
    private let exclusions: TreeExclusions?
    private var builder = TreeManifest.Builder()
    private var identities: [FileStatus.Identity] = []
    /// The directories that are still to be listed, with their paths.
    private var directories: [(index: Int, path: [UInt8])] = [(0, [])]

    /// Walks the whole directory, without excluded entries. Errors begin with the directory's path.
    /// - Throws: `unreadable`, `unsupported`, `nameRejected`, `tooLarge`; `sourceChanged` if an entry is replaced meanwhile.
    package static func scan(_ directory: SafeDirectory, excluding exclusions: TreeExclusions? = nil) throws(TreeError) -> Scan {
        var scanner = TreeScanner(root: TreeRoot(directory), exclusions: exclusions)
        guard let status = FileStatus(descriptor: directory.descriptor) else { throw .unreadable(FileError("look at", directory.path)) }
        let mode = status.entryMode { earshot_listed_group_rights(directory.descriptor) }
        try scanner.append(TreeEntry(parent: 0, name: [], mode: mode, modified: status.entryTime, content: .directory), status, [])
        var next = 0
        while next < scanner.directories.count {
            let (index, path) = scanner.directories[next]
            // The path is no longer needed, and a deep tree has long ones.
            scanner.directories[next].path = []
            try scanner.list(index, path)
            next += 1
        }
        return Scan(manifest: try scanner.builder.finish(), identities: scanner.identities)
    }

    private init(root: TreeRoot, exclusions: TreeExclusions?) {
        self.root = root
        self.exclusions = exclusions
    }

    private func shown(_ path: [UInt8]) -> String { Self.shown(path, below: self.root) }

    private static func shown(_ path: [UInt8], below root: TreeRoot) -> String {
        path.isEmpty ? root.directory.path : "\(root.directory.path)/\(String(decoding: path, as: UTF8.self))"
    }

    private mutating func append(_ entry: TreeEntry, _ status: FileStatus, _ path: [UInt8]) throws(TreeError) {
        // Calls no method on a copy of this scanner: it would share the arrays, and each entry would copy all earlier ones.
        let root = self.root
        try self.builder.append(entry, path: Self.shown(path, below: root))
        self.identities.append(status.identity)
    }

    private mutating func list(_ index: Int, _ path: [UInt8]) throws(TreeError) {
        let descriptor: CInt
        do throws(FileError) {
            descriptor = try self.root.open(index, path: path)
        } catch {
            // The entry was a directory a moment ago.
            throw [ELOOP, ENOTDIR, ENOENT].contains(error.code) ? .sourceChanged(path: self.shown(path)) : .unreadable(error)
        }
        for name in try self.names(in: descriptor, path) {
            let entry = path.isEmpty ? name : path + [UInt8(ascii: "/")] + name
            // An excluded directory is not listed, and an excluded entry may be one that cannot be sent.
            guard self.exclusions?.matches(entry) != true else { continue }
            try self.look(at: name, in: descriptor, parent: index, path: entry)
        }
    }

    private func names(in directory: CInt, _ path: [UInt8]) throws(TreeError) -> [[UInt8]] {
        var names: [[UInt8]]
        do throws(FileError) {
            names = try DirectoryNames.list(directory, self.shown(path), limit: TreeLimits.entries)
        } catch {
            throw .unreadable(error)
        }
        // Checked here as well as when entries are appended: the names of one directory alone could exhaust memory.
        guard names.count < TreeLimits.entries else { throw .tooLarge("it has more than \(TreeLimits.entries) entries") }
        names.sort { Self.precedes($0, $1) }
        return names
    }

    private static func precedes(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        let order = memcmp(left, right, min(left.count, right.count))
        return order == 0 ? left.count < right.count : order < 0
    }

    private mutating func look(at name: [UInt8], in directory: CInt, parent: Int, path: [UInt8]) throws(TreeError) {
        guard let status = name.withCString({ FileStatus(of: $0, in: directory) }) else {
            throw errno == ENOENT ? .sourceChanged(path: self.shown(path)) : .unreadable(FileError("look at", self.shown(path)))
        }
        let mode = status.entryMode { name.withCString { earshot_listed_group_rights_at(directory, $0) } }
        let content: TreeEntry.Content
        switch status.kind {
        case .directory:
            content = .directory
            self.directories.append((self.builder.count, path))
        case .regular:
            content = try self.content(of: name, in: directory, status, mode, path)
        case .link:
            content = .link(target: try self.target(of: name, in: directory, path))
        case .namedPipe, .socket, .device, .other:
            throw .unsupported(path: self.shown(path), what: "\(status.kind)")
        }
        let entry = TreeEntry(parent: parent, name: name, mode: mode, modified: status.entryTime, content: content)
        try self.append(entry, status, path)
    }

    private func content(
        of name: [UInt8], in directory: CInt, _ status: FileStatus, _ mode: UInt16, _ path: [UInt8]
    ) throws(TreeError) -> TreeEntry.Content {
        // Checked now, rather than after half of the other entries have been sent.
        if mode & 0o444 != 0o444, name.withCString({ faccessat(directory, $0, R_OK, AT_EACCESS) }) != 0 {
            throw .unreadable(FileError("read", self.shown(path)))
        }
        guard status.mayHaveHoles || status.size == 0 else { return .file(size: status.size) }
        let descriptor = name.withCString { openat(directory, $0, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) }
        guard descriptor >= 0 else { throw .unreadable(FileError("open", self.shown(path))) }
        let file = OpenFile(descriptor: descriptor, subject: self.shown(path))
        guard let opened = FileStatus(descriptor: descriptor), opened.identity == status.identity, opened.size == status.size,
            opened.modified == status.modified
        else { throw .sourceChanged(path: self.shown(path)) }
        try self.checkSize(of: file, path)
        guard status.size > 0 else { return .file(size: 0) }
        guard let extents = Self.extents(of: file, size: status.size) else { return .file(size: status.size) }
        return .sparse(size: status.size, TreeEntry.Extents(extents))
    }

    /// Checks that a file has the size that it reports. The manifest needs the sizes of all files before any of them is read.
    private func checkSize(of file: OpenFile, _ path: [UInt8]) throws(TreeError) {
        let isRight: Bool
        do throws(FileError) {
            isRight = try file.hasReportedSize(try file.status())
        } catch {
            throw .unreadable(error)
        }
        guard isRight else { throw .unsupported(path: self.shown(path), what: "a file of another size than it reports") }
    }

    /// Returns the file's data runs; `nil` if the file system cannot tell.
    private static func extents(of file: OpenFile, size: UInt64) -> [TreeEntry.Extent]? {
        var extents: [TreeEntry.Extent] = []
        var position: Int64 = 0
        while UInt64(position) < size {
            let start = earshot_seek_data(file.descriptor, position)
            guard start >= 0 else { return errno == ENXIO ? extents : nil }
            guard UInt64(start) < size else { return extents }
            let end = earshot_seek_hole(file.descriptor, start)
            guard end > start else { return nil }
            let length = min(UInt64(end), size) - UInt64(start)
            extents.append(TreeEntry.Extent(offset: UInt64(start), length: length))
            // A manifest cannot hold more of them: the caller's limit reports that.
            guard extents.count <= TreeLimits.manifestBytes / TreeEntry.Extents.width else { return extents }
            position = end
        }
        return extents
    }

    private func target(of name: [UInt8], in directory: CInt, _ path: [UInt8]) throws(TreeError) -> [UInt8] {
        var code: CInt = 0
        // One byte more than allowed: a target that fills the buffer was truncated.
        let target = [UInt8](unsafeUninitializedCapacity: TreeLimits.linkBytes + 1) { buffer, count in
            let length = name.withCString { name in
                buffer.withMemoryRebound(to: CChar.self) { space in
                    space.baseAddress.map { readlinkat(directory, name, $0, space.count) } ?? 0
                }
            }
            code = length < 0 ? errno : 0
            count = max(length, 0)
        }
        guard code == 0 else {
            throw [EINVAL, ENOENT].contains(code)
                ? .sourceChanged(path: self.shown(path)) : .unreadable(FileError("read", self.shown(path), code: code))
        }
        return target
    }
}
