internal import EarshotSafety

/// A tree as a tar archive (POSIX.1-2001 `pax`), made as it is read: for programs that do not know the tree format.
///
/// Entries come depth-first, each behind its directory. GNU tar sets a directory's mode and time once it reads the first entry outside of
/// that directory: in any other order a directory that may not be written to would refuse its own content.
///
/// Names, link targets, sizes and times that the old header cannot hold are in extended headers; holes are left out, as GNU tar's sparse
/// format 1.0 does it, which GNU tar, libarchive and Python read. Used by one thread at a time.
package final class TarStream {
    private let reader: TreeReader
    private let name: [UInt8]
    /// By directory, the first of its entries, which stand together; 0 for everything else.
    private var firstEntries: [UInt32]
    /// The entries that are next, by directory on the way from the root: the last one goes first.
    private var next: [Int] = [0]
    /// What is ready to be given out.
    private var ready: ArraySlice<UInt8> = []
    /// The data of the entry whose header went out last.
    private var data: Range<UInt64> = 0..<0
    private var padding = 0
    private var hasEnded = false

    /// The tree that `reader` reads, under that name for its root.
    package init(_ reader: TreeReader, name: String) {
        self.reader = reader
        self.name = Array(name.utf8)
        let manifest = reader.manifest
        self.firstEntries = [UInt32](repeating: 0, count: manifest.count)
        for index in stride(from: manifest.count - 1, to: 0, by: -1) { self.firstEntries[manifest.parent(of: index)] = UInt32(index) }
    }

    /// At most `count` bytes, which must be at least 1; none at the end.
    /// - Throws: as `TreeReader.read`.
    package func next(_ count: Int) throws(TreeError) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(count)
        while result.count < count {
            let space = count - result.count
            if !self.ready.isEmpty {
                result.append(contentsOf: self.ready.prefix(space))
                self.ready = self.ready.dropFirst(space)
            } else if !self.data.isEmpty {
                let wanted = Int(min(UInt64(space), UInt64(self.data.count)))
                result.append(contentsOf: try self.reader.bytes(at: self.data.lowerBound, count: wanted))
                self.data = (self.data.lowerBound + UInt64(wanted))..<self.data.upperBound
                if self.data.isEmpty { self.ready = ArraySlice(repeating: 0, count: self.padding) }
            } else if !self.step() {
                break
            }
        }
        return result
    }

    /// The next entry, depth-first; `nil` after the last one.
    private func nextEntry() -> Int? {
        guard let index = self.next.popLast() else { return nil }
        let manifest = self.reader.manifest
        let following = index + 1
        let hasSibling = index > 0 && following < manifest.count && manifest.parent(of: following) == manifest.parent(of: index)
        if hasSibling { self.next.append(following) }
        if self.firstEntries[index] > 0 { self.next.append(Int(self.firstEntries[index])) }
        return index
    }

    /// Makes the next header; `false` at the end.
    private func step() -> Bool {
        guard let index = self.nextEntry() else {
            guard !self.hasEnded else { return false }
            self.hasEnded = true
            self.ready = ArraySlice(repeating: 0, count: 2 * TarHeader.block)
            return true
        }
        let entry = self.reader.manifest[index]
        let path = self.reader.manifest.path(of: index)
        var bytes: [UInt8] = []
        let map = TarHeader.append(entry, path: path.isEmpty ? self.name : self.name + [UInt8(ascii: "/")] + path, to: &bytes)
        self.data = self.reader.manifest.data(of: index)
        self.padding = TarHeader.padding(UInt64(map) + UInt64(self.data.count))
        if self.data.isEmpty { bytes.append(contentsOf: repeatElement(0, count: self.padding)) }
        self.ready = bytes[...]
        return true
    }
}
