import EarshotTree

/// The manifest of a directory: the first byte says whether the rest is a manifest from a peer, or choices from which one is built.
///
/// A manifest that is read keeps the rules and encodes to the same bytes: no name or path leads out of the tree, and its data has no gaps.
/// A built manifest can be read. With a byte changed, reading it does no harm.
enum TreeHarness: Harness {
    static func run(_ input: [UInt8]) {
        var dice = Dice(input)
        if dice.byte() & 1 == 0 {
            self.read(Array(input.dropFirst()))
            return
        }
        var builder = TreeManifest.Builder()
        let damage = (place: Int(dice.byte()) << 8 | Int(dice.byte()), value: dice.byte())
        while !dice.isEmpty {
            // Entries that break the rules are left out.
            try? builder.append(self.entry(&dice, isRoot: builder.count == 0), path: "")
        }
        guard let manifest = try? builder.finish() else { return }
        self.read(manifest.bytes, mustSucceed: true)
        var damaged = manifest.bytes
        damaged[damage.place % damaged.count] = damage.value
        self.read(damaged)
    }

    private static func entry(_ dice: inout Dice, isRoot: Bool) -> TreeEntry {
        let kind = dice.byte()
        let time = TreeEntry.Time(seconds: Int64(dice.byte()), nanoseconds: UInt32(dice.byte()))
        if isRoot { return TreeEntry(parent: 0, name: [], mode: 0o755, modified: time, content: .directory) }
        let parent = Int(dice.number(below: 16))
        let name = dice.take(1 + Int(dice.number(below: 12)))
        let content: TreeEntry.Content
        switch kind % 4 {
        case 0: content = .directory
        case 1: content = .file(size: kind & 16 == 0 ? UInt64(dice.byte()) : UInt64(Int64.max) - UInt64(dice.byte()))
        case 2:
            var offset: UInt64 = 0
            let extents = (0..<dice.number(below: 4)).map { _ in
                let extent = TreeEntry.Extent(offset: offset + UInt64(dice.byte()), length: UInt64(dice.byte()))
                offset = extent.offset + extent.length
                return extent
            }
            content = .sparse(size: offset + UInt64(dice.byte()), TreeEntry.Extents(extents))
        default: content = .link(target: dice.take(Int(dice.number(below: 24))))
        }
        return TreeEntry(parent: parent, name: name, mode: UInt16(dice.byte()), modified: time, content: content)
    }

    private static func read(_ bytes: [UInt8], mustSucceed: Bool = false) {
        let manifest: TreeManifest
        do throws(TreeError) {
            manifest = try TreeManifest(decoding: bytes)
        } catch {
            demand(!mustSucceed, "what was made can be read: \(error)")
            return
        }
        var builder = TreeManifest.Builder()
        var end = UInt64(bytes.count)
        for index in 0..<manifest.count {
            let entry = manifest[index]
            do throws(TreeError) {
                try builder.append(entry, path: "")
            } catch {
                demand(false, "what was read can be made: \(error)")
            }
            let data = manifest.data(of: index)
            demand(data.lowerBound == end, "data lies without a gap")
            end = data.upperBound
            if !data.isEmpty { demand(manifest.entry(at: data.lowerBound) == index, "a byte belongs to its entry") }
            guard index > 0 else { continue }
            demand(manifest.isDirectory(manifest.parent(of: index)) && manifest.parent(of: index) < index, "what holds it is a directory")
            self.check(entry.name)
        }
        demand(end == manifest.size, "the data is the whole of the rest")
        do throws(TreeError) {
            let written = try builder.finish().bytes
            demand(written == bytes, "reading and writing is the identity")
        } catch {
            demand(false, "what was read can be written: \(error)")
        }
    }

    private static func check(_ name: [UInt8]) {
        demand(!name.isEmpty && name.count <= 255, "a component's length")
        demand(!name.contains(0) && !name.contains(UInt8(ascii: "/")), "one component")
        demand(name != Array(".".utf8) && name != Array("..".utf8), "no name climbs")
    }
}
