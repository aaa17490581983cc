internal import CLinux
internal import EarshotSafety
internal import Glibc

/// The root directory of a tree, whose entries are reached from its descriptor without following a symbolic link.
///
/// Paths come from a checked manifest only. The directory that was used last stays open, because the entries of one directory are adjacent.
/// Used by one thread at a time.
final class TreeRoot {
    let directory: SafeDirectory
    private var cached: (index: Int, descriptor: OpenFile)?

    init(_ directory: SafeDirectory) {
        self.directory = directory
    }

    /// Returns an open descriptor of the directory at `index` of the manifest.
    func open(_ index: Int, of manifest: TreeManifest) throws(FileError) -> CInt {
        if let cached = self.cached, cached.index == index { return cached.descriptor.descriptor }
        return try self.open(index, path: manifest.path(of: index))
    }

    /// Returns an open descriptor of the directory at that path below the root; `index` is its key in the cache.
    func open(_ index: Int, path: [UInt8]) throws(FileError) -> CInt {
        guard !path.isEmpty else { return self.directory.descriptor }
        if let cached = self.cached, cached.index == index { return cached.descriptor.descriptor }
        let file = OpenFile(
            descriptor: try Self.descend(from: self.directory, path), subject: String(decoding: path, as: UTF8.self))
        self.cached = (index, file)
        return file.descriptor
    }

    private static func descend(from directory: SafeDirectory, _ path: [UInt8]) throws(FileError) -> CInt {
        let subject = "\(directory.path)/\(String(decoding: path, as: UTF8.self))"
        let descriptor = path.withCString { earshot_open_beneath(directory.descriptor, $0, O_RDONLY | O_DIRECTORY, 0) }
        guard descriptor < 0 else { return descriptor }
        guard errno == ENOSYS else { throw FileError("open", subject) }
        // For old kernels and narrow sandboxes. Opening component by component gives the same guarantee.
        var current = OpenFile(descriptor: dup(directory.descriptor), subject: subject)
        for component in path.split(separator: UInt8(ascii: "/")) {
            let next = Array(component).withCString {
                openat(current.descriptor, $0, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
            }
            guard next >= 0 else { throw FileError("open", subject) }
            current = OpenFile(descriptor: next, subject: subject)
        }
        let result = fcntl(current.descriptor, F_DUPFD_CLOEXEC, 0)
        guard result >= 0 else { throw FileError("open", subject) }
        return result
    }

    /// Returns an entry's name for errors.
    func subject(_ index: Int, of manifest: TreeManifest) -> String { "\(self.directory.path)/\(manifest.pathText(of: index))" }
}

extension [UInt8] {
    /// Calls `body` with the bytes as a C string, for a system call. They contain no NUL: names and targets are checked for it.
    func withCString<Value>(_ body: (UnsafePointer<CChar>) -> Value) -> Value {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: self.count + 1) { buffer in
            for (index, byte) in self.enumerated() { buffer.initializeElement(at: index, to: CChar(bitPattern: byte)) }
            buffer.initializeElement(at: self.count, to: 0)
            guard let start = buffer.baseAddress else { return "".withCString(body) }
            return body(UnsafePointer(start))
        }
    }
}
