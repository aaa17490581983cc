import EarshotSafety
import Foundation
import Testing

@testable import EarshotTree

/// The estimated disk space of a tree, and the estimated memory while it is received, compared with the space that it really takes.
@Suite struct DiskBlocksTests {
    private let blocks = DiskBlocks(size: 4096)

    @Test(
        arguments: [0, 1, 512, TreeLimits.block - 1].map { ($0, TreeLimits.block) }
            + [TreeLimits.block, TreeLimits.block + 1, 65_536].map { ($0, $0) })
    func noBlockIsSmallerThanAPage(_ told: UInt64, _ taken: UInt64) {
        #expect(DiskBlocks(size: told).size == taken)
    }

    @Test func filesTakeWholeBlocks() {
        for (bytes, rounded) in [(0, 0), (1, 4096), (4096, 4096), (4097, 8192)] as [(UInt64, UInt64)] {
            #expect(self.blocks.rounded(bytes) == rounded)
            #expect(self.blocks.file(bytes) == rounded + 4096)
        }
        #expect(self.blocks.rounded(.max) == .max)
        #expect(self.blocks.file(.max) == .max && self.blocks.tree(.max) == .max)
    }

    @Test func blocksThatTwoRunsShareCountOnce() {
        var runs = BlockRuns(of: self.blocks)
        #expect(runs.bytes == 0)
        runs.add(at: 10, count: 0)
        #expect(runs.bytes == 0)
        for (offset, count, sum) in [(0, 1, 1), (4095, 1, 1), (4095, 2, 2), (8191, 1, 2), (8192, 4096, 3), (20_479, 2, 5)]
            as [(UInt64, UInt64, UInt64)]
        {
            runs.add(at: offset, count: count)
            #expect(runs.bytes == sum * 4096, "at \(offset)")
        }
        runs.add(at: TreeLimits.size - 1, count: 1)
        #expect(runs.bytes == 6 * 4096)
    }

    /// As one by one, at every edge of its marks.
    @Test(arguments: [0, 1, 63, 64, 65, 200]) func placesOfManyExtents(_ count: Int) {
        let extents = (0..<count).map { TreeEntry.Extent(offset: UInt64($0) * 100, length: UInt64($0 % 7) + 1) }
        let map = ExtentMap(.sparse(size: 100_000, TreeEntry.Extents(extents)))
        var position: UInt64 = 0
        for extent in extents {
            for within in 0..<extent.length {
                let place = map.place(position)
                #expect(place.offset == extent.offset + within && place.run == extent.length - within)
                position += 1
            }
            #expect(map.dataBefore(extent.offset) == position - extent.length)
        }
        let end = map.place(position)
        #expect(end.offset == 100_000 && end.run == 0)
        #expect(map.dataBefore(.max) == position)
        #expect(Array(TreeEntry.Extents(extents)) == extents)
    }

    // MARK: Against a disk

    private static func manifest(_ entries: [TreeEntry]) throws -> TreeManifest { try TreeFixtures.decode(TreeFixtures.raw(entries)) }

    /// Manifests that take much of a disk for what they are.
    private static func entries(_ shape: String) -> [TreeEntry] {
        let root = [TreeFixtures.root]
        func extents(_ count: UInt64, _ apart: UInt64, length: UInt64 = 1, from start: UInt64 = 0) -> [TreeEntry] {
            let runs = (0..<count).map { (start + $0 * apart, length) }
            return root + [TreeFixtures.sparse("a", in: 0, size: count * apart + start + length, runs)]
        }
        func links(_ length: Int) -> [TreeEntry] {
            (0..<10_000).map { TreeFixtures.link(Self.name($0), in: 0, to: String(repeating: "x", count: length)) }
        }
        switch shape {
        case "a byte a block": return extents(20_000, 4096)
        case "a byte in every other block": return extents(20_000, 8192)
        case "a byte in every tenth block": return extents(20_000, 40_960)
        case "runs across blocks": return extents(10_000, 16_384, length: 2, from: 4095)
        case "empty files": return root + (0..<100_000).map { TreeFixtures.file(Self.name($0), in: 0) }
        case "files of a byte": return root + (0..<10_000).map { TreeFixtures.file(Self.name($0), in: 0, size: 1) }
        case "long names": return root + (0..<10_000).map { TreeFixtures.file(Self.name($0, 255), in: 0) }
        case "directories with long names": return root + (0..<10_000).map { TreeFixtures.directory(Self.name($0, 255), in: 0) }
        case "deep directories": return root + (0..<TreeLimits.depth - 1).map { TreeFixtures.directory("d", in: $0) }
        case "short links": return root + links(59)
        default: return root + links(60)
        }
    }

    private static func name(_ number: Int, _ length: Int = 7) -> String {
        let digits = String(number)
        return String(repeating: "0", count: length - digits.count) + digits
    }

    static let shapes = [
        "a byte a block", "a byte in every other block", "a byte in every tenth block", "runs across blocks", "empty files",
        "files of a byte", "long names", "directories with long names", "deep directories", "short links", "long links",
    ]

    /// Returns the bytes that the kernel has allocated for a tree, its directory included.
    private static func allocated(_ path: String) -> UInt64 {
        var sum: UInt64 = 0
        var status = stat()
        var paths = [path]
        while let next = paths.popLast() {
            guard lstat(next, &status) == 0 else { continue }
            sum += UInt64(status.st_blocks) * 512
            guard status.st_mode & S_IFMT == S_IFDIR, let names = try? FileManager.default.contentsOfDirectory(atPath: next) else {
                continue
            }
            paths += names.map { "\(next)/\($0)" }
        }
        return sum
    }

    /// On the file system of the temporary files, of any kind, a tree takes no more than its reserved space, also while it is written.
    @Test(arguments: Self.shapes) func aDiskTakesNoMore(_ shape: String) throws {
        let scratch = try TreeScratch()
        try scratch.make("t")
        let directory = try scratch.directory("t")
        let blocks = DiskBlocks(size: try directory.blockSize())
        let manifest = try Self.manifest(Self.entries(shape))
        let room = manifest.room(on: blocks)
        // The tree's list and the spool's files are stored elsewhere.
        let beside = blocks.tree(UInt64(manifest.bytes.count))
        let writer = TreeWriter(into: directory, size: manifest.size, on: blocks)
        _ = try manifest.bytes.withUnsafeBytes { try writer.write($0) }
        #expect(writer.diskBytes <= room)
        let data = Int(manifest.size) - manifest.bytes.count
        for part in [data / 3, data - data / 3] {
            _ = try [UInt8](repeating: 7, count: part).withUnsafeBytes { try writer.write($0) }
            #expect(writer.diskBytes <= room)
            #expect(Self.allocated(directory.path) <= writer.diskBytes - beside, "\(shape) on its way")
        }
        try writer.finish()
        #expect(writer.diskBytes == room)
        let taken = Self.allocated(directory.path)
        #expect(taken <= room - beside, "\(shape): \(taken) of \(room - beside)")
    }

    /// Interrupted anywhere and looked at again, it counts the same.
    @Test(arguments: ["a byte in every other block", "runs across blocks", "files of a byte"]) func resumedItCountsTheSame(_ shape: String)
        throws
    {
        let scratch = try TreeScratch()
        try scratch.make("t")
        let directory = try scratch.directory("t")
        let manifest = try Self.manifest(Self.entries(shape))
        let writer = TreeWriter(into: directory, size: manifest.size, on: self.blocks)
        _ = try manifest.bytes.withUnsafeBytes { try writer.write($0) }
        _ = try [UInt8](repeating: 7, count: 5001).withUnsafeBytes { try writer.write($0) }
        let again = try TreeWriter(resuming: directory, manifest: manifest, size: manifest.size, on: self.blocks)
        #expect(again.offset == writer.offset || shape == "files of a byte")
        #expect(again.diskBytes <= writer.diskBytes && again.diskBytes + 2 * 4096 >= writer.diskBytes)
    }

    // MARK: Against the memory

    /// Whole, a list takes at most twice what it is on the wire: one of many entries that are as short as can be, and one of a single file
    /// with many extents.
    @Test func memoryOfLongLists() throws {
        let entries = (1..<TreeLimits.entries / 8).map { number in
            // Four letters of base 64, ascending.
            let name = [18, 12, 6, 0].map { UInt8(0x30 + ((number >> $0) & 63)) }
            return TreeEntry(parent: 0, name: name, mode: 0, modified: TreeFixtures.time, content: .directory)
        }
        let many = try Self.manifest([TreeFixtures.root] + entries)
        #expect(many.count == TreeLimits.entries / 8)
        #expect(many.memory <= 2 * many.bytes.count)
        let count = TreeLimits.manifestBytes / 8 / TreeEntry.Extents.width
        let runs = TreeEntry.Extents((0..<count).map { TreeEntry.Extent(offset: UInt64($0) * 2, length: 1) })
        let file = TreeEntry(
            parent: 0, name: [0x61], mode: 0, modified: TreeFixtures.time, content: .sparse(size: UInt64(count) * 2, runs))
        let sparse = try Self.manifest([TreeFixtures.root, file])
        #expect(sparse.memory <= 2 * sparse.bytes.count)
        // The decoded extents share the bytes of the manifest.
        guard case .sparse(_, let extents) = sparse[1].content else { throw CocoaError(.fileReadUnknown) }
        let shares = sparse.bytes.withUnsafeBytes { list in
            extents.encoded.withUnsafeBytes { own in
                own.baseAddress.map { start in list.baseAddress.map { $0 < start && start < $0 + list.count } ?? false } ?? false
            }
        }
        #expect(shares)
    }

    /// While a list arrives, memory holds it once, and the missing part takes no memory.
    @Test func aListThatComesIsNotHeldTwice() throws {
        let scratch = try TreeScratch()
        let manifest = try Self.manifest(Self.entries("empty files"))
        let writer = TreeWriter(into: try scratch.directory(), size: manifest.size, on: self.blocks)
        var rest = manifest.bytes[...]
        while rest.count > 1 {
            let piece = rest.prefix(min(100_003, rest.count - 1))
            _ = try piece.withUnsafeBytes { try writer.write($0) }
            rest = rest.dropFirst(piece.count)
            #expect(writer.listCapacity <= manifest.bytes.count + 8192)
        }
    }
}
