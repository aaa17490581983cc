internal import CLinux
package import EarshotSafety
internal import Glibc

/// Makes a directory out of the bytes of a tree, as they come, in pieces of any length.
///
/// The root is made by the caller, empty, where no other process writes. Entries are made below its descriptor, without following a link,
/// and none in the place of another: two names may be one to a file system that does not tell capital letters, or ways to write an accent.
/// While it is being written everything can be read and written by its owner; `finish` gives directories their times, and
/// `TreePermissions` takes from the owner what the sender's had not. Used by one thread at a time.
package final class TreeWriter {
    /// What is due.
    private enum State {
        /// More bytes of the manifest; its length once the header is there.
        case manifest(length: Int?)
        /// The manifest is whole: nothing is made before the caller has looked at it.
        case admitted(TreeManifest)
        case entries(TreeManifest, Position)
        case finished
    }

    /// How far it is.
    private struct Position {
        /// The entry that is due.
        var index: Int
        /// The bytes of its data that are written.
        var written: UInt64
        /// Whether the entry is there already.
        var isBegun = false
        var file: OpenFile?
        var entry: TreeEntry?
        var map: ExtentMap?
        /// What is on the disk of its data.
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
    /// The manifest as it comes: not within the state, where it would be copied to be added to.
    private var list: [UInt8] = []
    /// Bytes of the stream so far.
    package private(set) var offset: UInt64 = 0
    /// What the manifest and the entries that are whole take on the disk.
    private var made: UInt64 = 0

    /// Writes into an empty directory; `size` is the stream's length in bytes, as it was announced. `blocks` is by what `diskBytes` counts.
    package init(into directory: SafeDirectory, size: UInt64, on blocks: DiskBlocks = DiskBlocks(size: TreeLimits.block)) {
        self.root = TreeRoot(directory)
        self.size = size
        self.blocks = blocks
    }

    /// Goes on in a directory in which an interrupted writer has left entries of this manifest; `offset` says how far that had come.
    /// - Throws: `file`, `malformed` where the announced size is not the manifest's.
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

    /// What the tree consists of, once that is known.
    package var manifest: TreeManifest? {
        switch self.state {
        case .manifest, .finished: nil
        case .admitted(let manifest), .entries(let manifest, _): manifest
        }
    }

    /// What is on the disk so far, in bytes, as `TreeManifest.room` reckons.
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

    /// For how many bytes of a list that is not whole there is room in memory.
    var listCapacity: Int { self.list.capacity }

    /// How many entries were made, or begun.
    package var entries: UInt64 {
        switch self.state {
        case .manifest, .admitted, .finished: 0
        case .entries(_, let position): UInt64(position.index)
        }
    }

    private static var wrongSize: TreeError { .malformed("it is not as long as was announced") }

    /// Takes the next bytes of the stream, and returns how many of them it took: all, but when the manifest has become whole with them.
    /// It is there to be looked at then, and nothing has been made; the rest is for the next call.
    /// - Throws: `malformed`, `nameRejected`, `tooLarge`, with nothing made; `file`, after which no more can be written.
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
                // At once, so that it never lies in memory twice; what has not come yet takes none.
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

    /// Makes entries up to one that needs bytes, which is open then.
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
        // The mode last: it was made for its owner alone.
        try file.setMode(UInt32(entry.mode) | 0o600)
        var times = entry.times
        guard futimens(file.descriptor, &times) == 0 else { throw FileError("set the time of", file.subject) }
    }

    /// Makes one entry; a file is returned, open. The one that an interrupted writer made last is there already; what is there of any other
    /// name is another entry.
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
            // Some file systems keep no times of links: nothing depends on them.
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

    /// Every byte came: gives the directories their modes, with what their owner needs to work in them, and their times.
    /// - Throws: `malformed` where bytes are missing; `file`.
    package func finish() throws(TreeError) {
        switch self.state {
        case .admitted(let manifest), .entries(let manifest, _):
            // What needs no bytes, behind the last one that does, where no further call came for it.
            _ = try self.write(UnsafeRawBufferPointer(start: nil, count: 0))
            try self.finish(manifest)
        case .manifest, .finished: throw .malformed("it ends early")
        }
    }

    private func finish(_ manifest: TreeManifest) throws(TreeError) {
        guard case .entries(_, let position) = self.state, position.index == manifest.count else { throw .malformed("it ends early") }
        self.state = .finished
        do throws(FileError) {
            // From the last to the first: what is below a directory would change its time.
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

    /// How far an interrupted writer had come: the last entry that is there is the one that it was at, as they are made in order.
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
        guard let status = Self.status(of: last, in: root, manifest), status.kind == .file else { return position }
        let data = manifest.data(of: last)
        let map = ExtentMap(manifest[last].content)
        let written = min(map.dataBefore(status.size), data.upperBound - data.lowerBound)
        position.written = written
        position.runs = map.blocks(ofFirst: written, in: blocks)
        return position
    }

    private static func status(of index: Int, in root: TreeRoot, _ manifest: TreeManifest) -> EntryStatus? {
        guard let directory = try? root.open(manifest.parent(of: index), of: manifest) else { return nil }
        return EntryStatus(of: manifest[index].name, in: directory)
    }
}

extension TreeEntry {
    /// For utimensat(2): the time of access is that of the last change, for want of another.
    var times: [timespec] {
        let time = timespec(tv_sec: time_t(self.modified.seconds), tv_nsec: Int(self.modified.nanoseconds))
        return [time, time]
    }
}
