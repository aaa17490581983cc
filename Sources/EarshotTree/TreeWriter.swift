internal import CLinux
package import EarshotSafety
internal import Glibc

/// Creates a directory from the bytes of a tree as they arrive, in pieces of any length.
///
/// The caller creates the root, empty, where no other process writes. Entries are created below its descriptor, without following a link,
/// and never replace another: a file system that ignores case, or the encoding of accents, may treat two names as one. During writing, the
/// owner can read and write everything. `finish` sets the times of directories, and `TreePermissions` later removes the owner permissions
/// that the sender's entries lacked. Used by one thread at a time.
package final class TreeWriter {
    /// The next step.
    private enum State {
        /// Waits for more bytes of the manifest, whose length is known once the header has arrived.
        case manifest(length: Int?)
        /// The manifest is complete. Nothing is created before the caller has inspected it.
        case admitted(TreeManifest)
        case entries(TreeManifest, Position)
        case finished
    }

    /// The position in the tree.
    private struct Position {
        /// The entry that is being written.
        var index: Int
        /// The number of bytes of its data that are written.
        var written: UInt64
        /// Whether the entry has been created.
        var isBegun = false
        var file: OpenFile?
        var entry: TreeEntry?
        var map: ExtentMap?
        /// The blocks of its data that are on disk.
        var runs: BlockRuns

        init(index: Int, on blocks: DiskBlocks) {
            self.index = index
            self.written = 0
            self.runs = BlockRuns(of: blocks)
        }
    }

    private let root: TreeRoot
    private let size: UInt64
    private let blocks: DiskBlocks
    private var state: State = .manifest(length: nil)
    /// The bytes of the manifest as they arrive. Not part of the state, where each addition would copy them.
    private var list: [UInt8] = []
    /// The number of bytes of the stream so far.
    package private(set) var offset: UInt64 = 0
    /// The disk space of the manifest and the completed entries, in bytes.
    private var made: UInt64 = 0

    /// Creates a writer for an empty directory. `size` is the announced length of the stream in bytes, and `blocks` is the unit for
    /// `diskBytes`.
    package init(into directory: SafeDirectory, size: UInt64, on blocks: DiskBlocks = DiskBlocks(size: TreeLimits.block)) {
        self.root = TreeRoot(directory)
        self.size = size
        self.blocks = blocks
    }

    /// Resumes in a directory in which an interrupted writer has left entries of this manifest. `offset` tells its position.
    /// - Throws: `file`, `malformed` if the announced size is not the manifest's.
    package init(
        resuming directory: SafeDirectory, manifest: TreeManifest, size: UInt64, on blocks: DiskBlocks = DiskBlocks(size: TreeLimits.block)
    ) throws(TreeError) {
        guard manifest.size == size else { throw Self.wrongSize }
        self.root = TreeRoot(directory)
        self.size = size
        self.blocks = blocks
        let position = try Self.position(in: self.root, manifest, on: blocks)
        self.offset = manifest.data(of: position.index).lowerBound + position.written
        self.made = manifest.room(before: position.index, on: blocks)
        self.state = .entries(manifest, position)
    }

    /// The manifest, once it is known.
    package var manifest: TreeManifest? {
        switch self.state {
        case .manifest, .finished: nil
        case .admitted(let manifest), .entries(let manifest, _): manifest
        }
    }

    /// The disk space used so far, in bytes, estimated like `TreeManifest.room`.
    package var diskBytes: UInt64 {
        switch self.state {
        case .manifest, .admitted: return self.blocks.tree(self.offset)
        case .entries(let manifest, let position):
            guard position.isBegun, position.index < manifest.count else { return self.made }
            let entry = position.entry ?? manifest[position.index]
            return self.made.addingClamped(self.blocks.entry(entry)).addingClamped(position.runs.bytes)
        case .finished: return self.made
        }
    }

    /// The memory capacity, in bytes, of the list that is not complete yet.
    var listCapacity: Int { self.list.capacity }

    /// The number of entries that were created, or begun.
    package var entries: UInt64 {
        switch self.state {
        case .manifest, .admitted, .finished: 0
        case .entries(_, let position): UInt64(position.index)
        }
    }

    private static var wrongSize: TreeError { .malformed("it is not as long as was announced") }

    /// Writes the next bytes of the stream, and returns how many of them it took. It takes all, except when they complete the manifest:
    /// then the caller can inspect the manifest before anything is created, and passes the rest in the next call.
    /// - Throws: `malformed`, `nameRejected`, `tooLarge`, with nothing created; `file`, after which no more can be written.
    package func write(_ bytes: UnsafeRawBufferPointer) throws(TreeError) -> Int {
        switch self.state {
        case .manifest(let length):
            self.state = .finished
            return try self.collect(bytes, length)
        case .admitted(let manifest):
            self.state = .finished
            self.made = manifest.room(before: 1, on: self.blocks)
            return try self.write(bytes, manifest, Position(index: 1, on: self.blocks))
        case .entries(let manifest, let position):
            self.state = .finished
            return try self.write(bytes, manifest, position)
        case .finished:
            throw .malformed("more bytes came than were announced")
        }
    }

    private func collect(_ bytes: UnsafeRawBufferPointer, _ announced: Int?) throws(TreeError) -> Int {
        var length = announced
        var taken = 0
        if length == nil {
            taken = min(TreeLimits.headerLength - self.list.count, bytes.count)
            self.list.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes[..<taken]))
            if self.list.count == TreeLimits.headerLength {
                let result = self.list.withUnsafeBytes { header in
                    Result { () throws(TreeError) in try TreeManifest.lengths(header: header) }
                }
                let lengths = try result.get()
                guard lengths.stream == self.size else { throw Self.wrongSize }
                length = lengths.manifest
                // Reserved at once, so that the list is never in memory twice. Reserved capacity that is not filled yet takes no memory.
                self.list.reserveCapacity(lengths.manifest)
            }
        }
        if let length {
            let more = min(length - self.list.count, bytes.count - taken)
            self.list.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes[taken..<taken + more]))
            taken += more
        }
        self.offset += UInt64(taken)
        if self.list.count == length {
            let list = self.list
            self.list = []
            self.state = .admitted(try TreeManifest(decoding: list))
        } else {
            self.state = .manifest(length: length)
        }
        return taken
    }

    private func write(_ bytes: UnsafeRawBufferPointer, _ manifest: TreeManifest, _ begun: Position) throws(TreeError) -> Int {
        var position = begun
        var taken = 0
        do throws(FileError) {
            try self.advance(&position, manifest)
            while taken < bytes.count, let file = position.file, let map = position.map {
                let (offset, run) = map.place(position.written)
                let count = Int(min(UInt64(bytes.count - taken), run))
                try file.write(UnsafeRawBufferPointer(rebasing: bytes[taken..<taken + count]), at: offset)
                taken += count
                position.written += UInt64(count)
                position.runs.add(at: offset, count: UInt64(count))
                try self.advance(&position, manifest)
            }
        } catch {
            throw .file(error)
        }
        self.offset += UInt64(taken)
        guard taken == bytes.count else { throw .malformed("more bytes came than were announced") }
        self.state = .entries(manifest, position)
        return taken
    }

    /// Creates entries up to one that needs bytes, and opens that one.
    private func advance(_ position: inout Position, _ manifest: TreeManifest) throws(FileError) {
        while position.index < manifest.count {
            let entry: TreeEntry
            if let file = position.file, let begun = position.entry {
                let data = manifest.data(of: position.index)
                guard position.written == data.upperBound - data.lowerBound else { return }
                try self.complete(file, begun)
                entry = begun
            } else {
                entry = manifest[position.index]
                if let file = try self.make(entry, position.index, manifest, isThere: position.isBegun) {
                    position.isBegun = true
                    position.file = file
                    position.entry = entry
                    position.map = ExtentMap(entry.content)
                    continue
                }
            }
            self.made = self.made.addingClamped(self.blocks.whole(entry))
            position = Position(index: position.index + 1, on: self.blocks)
        }
    }

    private func complete(_ file: OpenFile, _ entry: TreeEntry) throws(FileError) {
        if case .sparse(let size, _) = entry.content {
            guard let length = off_t(exactly: size), ftruncate(file.descriptor, length) == 0 else {
                throw FileError("set the size of", file.subject, code: errno == 0 ? EFBIG : errno)
            }
        }
        // The mode comes last: the file was created for its owner alone.
        try file.setMode(UInt32(entry.mode) | 0o600)
        var times = entry.times
        guard futimens(file.descriptor, &times) == 0 else { throw FileError("set the time of", file.subject) }
    }

    /// Creates an entry and returns it open if it is a file. The last entry of an interrupted writer may exist already; for any other
    /// entry, an existing name is a conflict.
    private func make(_ entry: TreeEntry, _ index: Int, _ manifest: TreeManifest, isThere: Bool) throws(FileError) -> OpenFile? {
        let directory = try self.root.open(entry.parent, of: manifest)
        switch entry.content {
        case .directory:
            guard entry.name.withCString({ mkdirat(directory, $0, 0o700) }) == 0 || isThere && errno == EEXIST else {
                throw FileError("make the directory", self.root.subject(index, of: manifest))
            }
            return nil
        case .link(let target):
            let result = target.withCString { target in entry.name.withCString { symlinkat(target, directory, $0) } }
            guard result == 0 || isThere && errno == EEXIST else {
                throw FileError("make the link", self.root.subject(index, of: manifest))
            }
            var times = entry.times
            // Some file systems keep no times of links, and nothing depends on them.
            _ = entry.name.withCString { utimensat(directory, $0, &times, AT_SYMLINK_NOFOLLOW) }
            return nil
        case .file, .sparse:
            let making: CInt = isThere ? O_CREAT : O_CREAT | O_EXCL
            let flags = O_WRONLY | making | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
            let descriptor = entry.name.withCString { openat(directory, $0, flags, 0o600) }
            guard descriptor >= 0 else { throw FileError("create", self.root.subject(index, of: manifest)) }
            return OpenFile(descriptor: descriptor, subject: "a file of \(self.root.directory.path)")
        }
    }

    /// Completes the tree after the last byte: gives the directories their modes, plus the permissions that their owner needs to work in
    /// them, and their times.
    /// - Throws: `malformed` if bytes are missing; `file`.
    package func finish() throws(TreeError) {
        switch self.state {
        case .admitted(let manifest), .entries(let manifest, _):
            // Creates entries without data after the last one with data, for which no further call came.
            _ = try self.write(UnsafeRawBufferPointer(start: nil, count: 0))
            try self.finish(manifest)
        case .manifest, .finished: throw .malformed("it ends early")
        }
    }

    private func finish(_ manifest: TreeManifest) throws(TreeError) {
        guard case .entries(_, let position) = self.state, position.index == manifest.count else { throw .malformed("it ends early") }
        self.state = .finished
        do throws(FileError) {
            // In reverse order: changes below a directory would change its time.
            for index in (0..<manifest.count).reversed() where manifest.isDirectory(index) {
                let entry = manifest[index]
                let descriptor = try self.root.open(index, of: manifest)
                guard fchmod(descriptor, mode_t(entry.mode) | 0o700) == 0 || FileError.keepsNoPermissions(errno) else {
                    throw FileError("set the permissions of", self.root.subject(index, of: manifest))
                }
                var times = entry.times
                guard futimens(descriptor, &times) == 0 else { throw FileError("set the time of", self.root.subject(index, of: manifest)) }
            }
        } catch {
            throw .file(error)
        }
    }

    /// Returns the position of an interrupted writer. Entries are created in order, so the last existing entry is the one that it was
    /// writing.
    private static func position(
        in root: TreeRoot, _ manifest: TreeManifest, on blocks: DiskBlocks
    ) throws(TreeError) -> Position {
        var (low, high) = (1, manifest.count)
        while low < high {
            let middle = (low + high) / 2
            if Self.status(of: middle, in: root, manifest) != nil { low = middle + 1 } else { high = middle }
        }
        let last = low - 1
        guard last > 0 else { return Position(index: 1, on: blocks) }
        var position = Position(index: last, on: blocks)
        position.isBegun = true
        guard let status = Self.status(of: last, in: root, manifest), status.kind == .regular else { return position }
        let data = manifest.data(of: last)
        let map = ExtentMap(manifest[last].content)
        let written = min(map.dataBefore(status.size), data.upperBound - data.lowerBound)
        position.written = written
        position.runs = map.blocks(ofFirst: written, in: blocks)
        return position
    }

    private static func status(of index: Int, in root: TreeRoot, _ manifest: TreeManifest) -> FileStatus? {
        guard let directory = try? root.open(manifest.parent(of: index), of: manifest) else { return nil }
        return manifest[index].name.withCString { FileStatus(of: $0, in: directory) }
    }
}

extension TreeEntry {
    /// The times for utimensat(2). The access time is set to the same time, because the sender's is not known.
    var times: [timespec] {
        let time = timespec(tv_sec: time_t(self.modified.seconds), tv_nsec: Int(self.modified.nanoseconds))
        return [time, time]
    }
}
