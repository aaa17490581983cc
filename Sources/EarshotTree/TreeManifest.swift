/// The list of a tree's entries, from the beginning of the tree's bytes. It is checked as a whole, so every manifest can be written to
/// disk.
///
/// It keeps the bytes and the offset of each entry: half a million entries take less than 50 MB.
package struct TreeManifest: Sendable, Hashable {
    /// The header and the entries: the first bytes of the stream.
    package let bytes: [UInt8]
    /// The length of the whole stream, in bytes.
    package let size: UInt64
    /// The offset of each entry in `bytes`.
    private let offsets: [UInt32]
    /// The offset of each entry's data in the stream, and the end of the stream.
    private let starts: [UInt64]

    private init(bytes: [UInt8], offsets: [UInt32], starts: [UInt64]) {
        self.bytes = bytes
        self.offsets = offsets
        self.starts = starts
        self.size = starts.last ?? UInt64(bytes.count)
    }

    /// The number of entries, including the root.
    package var count: Int { self.offsets.count }

    /// Returns an entry; 0 is the root.
    package subscript(index: Int) -> TreeEntry {
        var offset = Int(self.offsets[index])
        // Cannot fail: it was decoded before, when the manifest was created.
        return TreeEntry(self.bytes, at: &offset)
            ?? TreeEntry(parent: 0, name: [], mode: 0, modified: TreeEntry.Time(seconds: 0, nanoseconds: 0), content: .directory)
    }

    /// Returns the index of the directory that holds an entry, without reading the rest of the entry.
    package func parent(of index: Int) -> Int {
        let offset = Int(self.offsets[index]) + 1
        return self.bytes.withUnsafeBytes { Int(UInt32(bigEndian: $0.loadUnaligned(fromByteOffset: offset, as: UInt32.self))) }
    }

    /// Whether an entry is a directory, without reading the rest of the entry.
    package func isDirectory(_ index: Int) -> Bool { self.bytes[Int(self.offsets[index])] == TreeEntry.Kind.directory.rawValue }

    /// Returns the range of an entry's data in the stream; empty if it has none.
    package func data(of index: Int) -> Range<UInt64> { self.starts[index]..<self.starts[index + 1] }

    /// Returns the entry whose data holds the byte of the stream at `offset`; `nil` outside of all data.
    package func entry(at offset: UInt64) -> Int? {
        guard offset >= UInt64(self.bytes.count), offset < self.size else { return nil }
        // Finds the last entry that begins at or before the offset: entries without data begin where the next one does.
        var (low, high) = (0, self.count - 1)
        while low < high {
            let middle = (low + high + 1) / 2
            if self.starts[middle] <= offset { low = middle } else { high = middle - 1 }
        }
        return low
    }

    /// Returns the path of an entry below the root, as bytes without a slash at either end; empty for the root.
    package func path(of index: Int) -> [UInt8] {
        var names: [ArraySlice<UInt8>] = []
        var index = index
        while index > 0 {
            let start = Int(self.offsets[index]) + TreeEntry.nameOffset
            names.append(self.bytes[start..<start + Int(self.bytes[start - 1])])
            index = self.parent(of: index)
        }
        return Array(names.reversed().joined(separator: CollectionOfOne(UInt8(ascii: "/"))))
    }

    /// Returns the path as text, for errors.
    package func pathText(of index: Int) -> String { String(decoding: self.path(of: index), as: UTF8.self) }

    /// Returns the disk space that the whole tree takes, in bytes, including the list of entries and the spool's own files.
    package func room(on blocks: DiskBlocks) -> UInt64 { self.room(before: self.count, on: blocks) }

    /// Returns the disk space of the list and of the entries before `end`.
    func room(before end: Int, on blocks: DiskBlocks) -> UInt64 {
        (0..<end).reduce(blocks.tree(UInt64(self.bytes.count))) { $0.addingClamped(blocks.whole(self[$1])) }
    }

    /// The memory that the manifest takes, in bytes.
    package var memory: Int {
        self.bytes.capacity + self.offsets.capacity * MemoryLayout<UInt32>.stride + self.starts.capacity * MemoryLayout<UInt64>.stride
    }
}

extension TreeManifest {
    /// Returns the length of header and entries, and of the whole stream, in bytes, from a header of `TreeLimits.headerLength` bytes.
    ///
    /// - Throws: `malformed`, `tooLarge`.
    package static func lengths(header: UnsafeRawBufferPointer) throws(TreeError) -> (manifest: Int, stream: UInt64) {
        let fields = try Self.fields(header)
        return (fields.manifest, fields.stream)
    }

    private static func fields(_ header: UnsafeRawBufferPointer) throws(TreeError) -> (entries: Int, manifest: Int, stream: UInt64) {
        var reader = ByteReader(bytes: header, offset: 0)
        guard let magic = reader.bytes(TreeLimits.magic.count), let entries = reader.integer(UInt32.self),
            let length = reader.integer(UInt32.self), let data = reader.integer(UInt64.self)
        else { throw .malformed("the header is cut short") }
        guard magic == TreeLimits.magic else { throw .malformed("it does not begin as one") }
        guard entries > 0 else { throw .malformed("it has no root") }
        guard entries <= TreeLimits.entries else { throw .tooLarge("it has more than \(TreeLimits.entries) entries") }
        let manifest = TreeLimits.headerLength + Int(length)
        guard manifest <= TreeLimits.manifestBytes else {
            throw .tooLarge("its list of entries is longer than \(TreeLimits.manifestBytes) bytes")
        }
        guard Int(entries) <= Int(length) / TreeEntry.shortest else { throw .malformed("its list of entries is too short") }
        let (stream, overflow) = data.addingReportingOverflow(UInt64(manifest))
        guard !overflow, stream <= TreeLimits.size else { throw .tooLarge("its data is more than a file can hold") }
        return (Int(entries), manifest, stream)
    }

    /// Decodes and checks header and entries. Nothing may follow them.
    ///
    /// - Throws: `malformed`, `nameRejected`, `tooLarge`.
    package init(decoding bytes: [UInt8]) throws(TreeError) {
        var offsets: [UInt32] = []
        var starts: [UInt64] = []
        try Self.decode(bytes, &offsets, &starts)
        self.init(bytes: bytes, offsets: offsets, starts: starts)
    }

    private static func decode(_ bytes: [UInt8], _ offsets: inout [UInt32], _ starts: inout [UInt64]) throws(TreeError) {
        let fields = bytes.withUnsafeBytes { buffer in Result { () throws(TreeError) in try Self.fields(buffer) } }
        let header = try fields.get()
        guard header.manifest == bytes.count else { throw .malformed("the list of entries is not as long as the header says") }
        offsets.reserveCapacity(header.entries)
        starts.reserveCapacity(header.entries + 1)
        var rules = TreeRules()
        var offset = TreeLimits.headerLength
        for _ in 0..<header.entries {
            offsets.append(UInt32(offset))
            starts.append(UInt64(bytes.count) + rules.data)
            guard let entry = TreeEntry(bytes, at: &offset) else { throw .malformed("an entry is cut short, or of no known kind") }
            do throws(TreeRules.Fault) {
                try rules.add(entry)
            } catch {
                throw TreeError(error, path: String(decoding: entry.name, as: UTF8.self))
            }
        }
        guard offset == bytes.count else { throw .malformed("something follows the last entry") }
        guard UInt64(bytes.count) + rules.data == header.stream else {
            throw .malformed("the sizes of its files are not those of its header")
        }
        starts.append(header.stream)
    }

    /// Builds a manifest entry by entry, under the same rules as the reader's.
    package struct Builder: Sendable {
        private var bytes = [UInt8](repeating: 0, count: TreeLimits.headerLength)
        private var offsets: [UInt32] = []
        private var lengths: [UInt64] = []
        private var rules = TreeRules()

        /// Creates an empty builder. Its first entry must be a root.
        package init() {}

        /// The number of entries.
        package var count: Int { self.offsets.count }

        /// Appends an entry; `path` is its name in errors.
        /// - Throws: `malformed` if it is out of order, `nameRejected`, `tooLarge`.
        package mutating func append(_ entry: TreeEntry, path: @autoclosure () -> String) throws(TreeError) {
            do throws(TreeRules.Fault) {
                try self.rules.add(entry)
            } catch {
                throw TreeError(error, path: path())
            }
            self.offsets.append(UInt32(clamping: self.bytes.count))
            self.lengths.append(entry.dataLength ?? 0)
            entry.encode(into: &self.bytes)
            guard self.bytes.count <= TreeLimits.manifestBytes else {
                throw .tooLarge("its list of entries is longer than \(TreeLimits.manifestBytes) bytes")
            }
        }

        /// Returns the manifest of the entries so far.
        /// - Throws: `malformed` without a root.
        package consuming func finish() throws(TreeError) -> TreeManifest {
            guard !self.offsets.isEmpty else { throw .malformed("it has no root") }
            var header = TreeLimits.magic
            header.append(integer: UInt32(self.offsets.count))
            header.append(integer: UInt32(self.bytes.count - TreeLimits.headerLength))
            header.append(integer: self.rules.data)
            self.bytes.replaceSubrange(0..<TreeLimits.headerLength, with: header)
            var starts: [UInt64] = []
            starts.reserveCapacity(self.offsets.count + 1)
            var start = UInt64(self.bytes.count)
            starts.append(start)
            for length in self.lengths {
                start += length
                starts.append(start)
            }
            guard start <= TreeLimits.size else { throw .tooLarge("its data is more than a file can hold") }
            return TreeManifest(bytes: self.bytes, offsets: self.offsets, starts: starts)
        }
    }
}

extension TreeError {
    init(_ fault: TreeRules.Fault, path: String) {
        switch fault {
        case .malformed(let what): self = .malformed(what)
        case .rejected(let reason): self = .nameRejected(path: path, reason: reason)
        case .tooLarge(let what): self = .tooLarge(what)
        }
    }
}
