import Foundation
import Testing

@testable import EarshotTree

@Suite struct TreeManifestTests {
    @Test func aDecodedManifestEqualsItsSource() throws {
        var builder = TreeManifest.Builder()
        for entry in TreeFixtures.example { try builder.append(entry, path: "") }
        let manifest = try builder.finish()
        #expect(manifest.bytes == TreeFixtures.raw(TreeFixtures.example))
        let decoded = try TreeManifest(decoding: manifest.bytes)
        #expect(decoded == manifest)
        #expect((0..<decoded.count).map { decoded[$0] } == TreeFixtures.example)
        #expect(decoded.size == UInt64(manifest.bytes.count) + 3 + 4096 + 10 + 5)
        #expect(decoded.pathText(of: 6) == "bin/back")
        #expect(decoded.entry(at: UInt64(manifest.bytes.count) + 2) == 3)
        #expect(decoded.entry(at: UInt64(manifest.bytes.count) + 3) == 7)
        #expect(decoded.entry(at: decoded.size - 1) == 8)
        #expect(decoded.entry(at: decoded.size) == nil)
        #expect(decoded.entry(at: 0) == nil)
    }

    @Test func everyCutIsRefused() {
        let bytes = TreeFixtures.raw(TreeFixtures.example)
        for length in 0..<bytes.count {
            #expect(throws: TreeError.self) { try TreeManifest(decoding: Array(bytes.prefix(length))) }
        }
        #expect(throws: TreeError.self) { try TreeManifest(decoding: bytes + [0]) }
    }

    /// If any byte is changed, decoding throws a typed error or returns a manifest with exactly the changed bytes.
    @Test func everyChangedByteIsSurvived() throws {
        let bytes = TreeFixtures.raw(TreeFixtures.example)
        for index in bytes.indices {
            for value in [0, 1, 0x2F, 0x7F, 0x80, 0xFF] as [UInt8] {
                var changed = bytes
                changed[index] = value
                do throws(TreeError) {
                    let manifest = try TreeFixtures.decode(changed)
                    #expect(manifest.bytes == changed)
                    for entry in 0..<manifest.count { _ = manifest.path(of: entry) }
                } catch { continue }
            }
        }
    }

    @Test func liesAreRefused() {
        let root = TreeFixtures.root
        for (name, entries, expected) in TreeFixtures.lies {
            #expect(refusal { _ = try TreeFixtures.decode(TreeFixtures.raw(entries)) } == expected, "\(name)")
        }
        #expect(refusal { _ = try TreeFixtures.decode(TreeFixtures.raw([])) } == "malformed")
        #expect(refusal { _ = try TreeFixtures.decode(TreeFixtures.raw([root], count: 2)) } == "malformed")
        #expect(refusal { _ = try TreeFixtures.decode(TreeFixtures.raw([root], count: .init(UInt32.max))) } == "too-large")
        #expect(refusal { _ = try TreeFixtures.decode(TreeFixtures.raw([root], data: 1)) } == "malformed")
        #expect(refusal { _ = try TreeFixtures.decode(TreeFixtures.raw([root], data: .max)) } == "too-large")
    }

    @Test(arguments: [
        ("a", 0, true), ("a/b/../c", 3, false), ("../a", 0, false), ("../a", 1, true), ("../..", 2, true), ("../..", 1, false),
        ("./../a", 1, true), ("a/..", 1, false), ("/a", 9, false), ("..a/b..", 0, true), ("a//b/", 0, true), (".", 0, true),
        ("../../../etc/passwd", 2, false), ("", 0, false),
    ]) func linksThatLeaveTheTreeAreRefused(target: String, depth: Int, isFine: Bool) {
        #expect((LinkTarget.fault(Array(target.utf8), depth: depth) == nil) == isFine)
    }

    @Test func linkTargetsByLength() {
        #expect(LinkTarget.fault([UInt8](repeating: 97, count: TreeLimits.linkBytes), depth: 0) == nil)
        #expect(LinkTarget.fault([UInt8](repeating: 97, count: TreeLimits.linkBytes + 1), depth: 0) != nil)
        #expect(LinkTarget.fault([97, 0, 98], depth: 0) != nil)
    }

    @Test func unsafeNamesAreRefused() {
        for (name, isFine) in [
            (String(repeating: "n", count: 255), true), ("..a", true), ("a\nb", true), ("", false), (".", false), ("..", false),
            ("a/b", false),
            ("a\0b", false),
        ] {
            let result = refusal { _ = try TreeFixtures.decode(TreeFixtures.raw([TreeFixtures.root, TreeFixtures.file(name, in: 0)])) }
            #expect(result == (isFine ? nil : "name-rejected"), "\(name)")
        }
    }

    private func chain(_ levels: Int, name: String) -> [TreeEntry] {
        [TreeFixtures.root] + (0..<levels).map { TreeFixtures.directory(name, in: $0) }
    }

    @Test func treesAboveTheDepthAreRefused() throws {
        let deepest = self.chain(TreeLimits.depth, name: "d")
        #expect(try TreeFixtures.decode(TreeFixtures.raw(deepest)).count == TreeLimits.depth + 1)
        #expect(refusal { _ = try TreeFixtures.decode(TreeFixtures.raw(self.chain(TreeLimits.depth + 1, name: "d"))) } == "too-large")
    }

    @Test func namesAboveTheLimitAreMalformed() throws {
        let longest = String(repeating: "n", count: TreeLimits.nameBytes)
        #expect(try TreeFixtures.decode(TreeFixtures.raw(self.chain(1, name: longest))).count == 2)
        #expect(refusal { _ = try TreeFixtures.decode(TreeFixtures.raw(self.chain(1, name: longest + "n"))) } == "malformed")
        // Bytes count, not characters.
        let characters = String(repeating: "é", count: TreeLimits.nameBytes / 2 + 1)
        #expect(refusal { _ = try TreeFixtures.decode(TreeFixtures.raw(self.chain(1, name: characters))) } == "malformed")
    }

    @Test func pathsAboveTheLimitAreRefused() throws {
        // 15 names of 255 and a slash each are 3,840 bytes; one of 255 more makes 4,095.
        let name = String(repeating: "p", count: 255)
        var entries = self.chain(16, name: name)
        #expect(try TreeFixtures.decode(TreeFixtures.raw(entries)).path(of: 16).count == TreeLimits.pathBytes)
        entries.append(TreeFixtures.file("x", in: 16))
        #expect(refusal { _ = try TreeFixtures.decode(TreeFixtures.raw(entries)) } == "too-large")
    }

    @Test func entriesAndBytes() throws {
        var builder = TreeManifest.Builder()
        try builder.append(TreeFixtures.root, path: "")
        let names = (1..<TreeLimits.entries).lazy.map { String(format: "%06d", $0) }
        for name in names { try builder.append(TreeFixtures.file(name, in: 0), path: "") }
        #expect(builder.count == TreeLimits.entries)
        var full = builder
        #expect(refusal { try full.append(TreeFixtures.file("x", in: 0), path: "") } == "too-large")
        let manifest = try builder.finish()
        #expect(try TreeManifest(decoding: manifest.bytes).count == TreeLimits.entries)
        var more = manifest.bytes
        more.replaceSubrange(8..<12, with: [0, 8, 0, 1])
        #expect(refusal { _ = try TreeFixtures.decode(more) } == "too-large")
    }

    @Test func otherModeBitsAreMalformed() throws {
        func decoded(_ mode: UInt16) throws(TreeError) -> UInt16 {
            try TreeFixtures.decode(TreeFixtures.raw([TreeFixtures.root, TreeFixtures.file("a", in: 0, mode: mode)]))[1].mode
        }
        #expect(try decoded(TreeLimits.modeBits) == TreeLimits.modeBits)
        for beyond in [TreeLimits.modeBits + 1, 1 << 15, .max] { #expect(refusal { _ = try decoded(beyond) } == "malformed") }
    }

    @Test func manifestsAboveTheLimitAreRefused() throws {
        var header = TreeLimits.magic
        header.append(integer: UInt32(1))
        var fitting = header
        fitting.append(integer: UInt32(TreeLimits.manifestBytes - TreeLimits.headerLength))
        fitting.append(integer: UInt64(0))
        #expect(try fitting.withUnsafeBytes { try TreeManifest.lengths(header: $0).manifest } == TreeLimits.manifestBytes)
        header.append(integer: UInt32(TreeLimits.manifestBytes - TreeLimits.headerLength + 1))
        header.append(integer: UInt64(0))
        #expect(refusal { _ = try header.withUnsafeBytes { try TreeManifest.lengths(header: $0) } } == "too-large")
    }
}

extension TreeFixtures {
    /// Manifests that contradict themselves or would lead out of the tree, and what each is refused as.
    static var lies: [(name: String, entries: [TreeEntry], error: String)] {
        let root = Self.root
        return [
            ("the same name twice", [root, Self.file("a", in: 0), Self.file("a", in: 0)], "malformed"),
            ("a file and a link of one name", [root, Self.file("a", in: 0), Self.link("a", in: 0, to: "b")], "malformed"),
            ("names out of order", [root, Self.file("b", in: 0), Self.file("a", in: 0)], "malformed"),
            (
                "directories out of order",
                [root, Self.directory("a", in: 0), Self.directory("b", in: 0), Self.file("x", in: 2), Self.file("x", in: 1)], "malformed"
            ),
            ("a file as a directory", [root, Self.file("a", in: 0), Self.file("b", in: 1)], "malformed"),
            ("a link as a directory", [root, Self.link("a", in: 0, to: "b"), Self.file("b", in: 1)], "malformed"),
            ("in itself", [root, Self.directory("a", in: 1)], "malformed"),
            ("in one that follows", [root, Self.directory("a", in: 2), Self.directory("b", in: 0)], "malformed"),
            ("two roots", [root, root], "name-rejected"),
            ("no root", [Self.file("a", in: 0)], "malformed"),
            ("a name that climbs", [root, Self.file("..", in: 0)], "name-rejected"),
            ("a name with a slash", [root, Self.file("../../etc/cron.d/x", in: 0)], "name-rejected"),
            ("an absolute name", [root, Self.file("/etc/passwd", in: 0)], "name-rejected"),
            ("a link to an absolute path", [root, Self.link("a", in: 0, to: "/etc")], "name-rejected"),
            ("a link that climbs", [root, Self.link("a", in: 0, to: "../x")], "name-rejected"),
            ("a link that climbs after going down", [root, Self.link("a", in: 0, to: "b/../../x")], "name-rejected"),
            ("set-user-id", [root, Self.file("a", in: 0, mode: 0o4755)], "malformed"),
            ("a size beyond a file's", [root, Self.file("a", in: 0, size: 1 << 63)], "too-large"),
            ("sizes that overflow", [root, Self.file("a", in: 0, size: 1 << 62), Self.file("b", in: 0, size: 1 << 62)], "too-large"),
            ("extents that overlap", [root, Self.sparse("a", in: 0, size: 100, [(0, 60), (50, 50)])], "malformed"),
            ("extents out of order", [root, Self.sparse("a", in: 0, size: 100, [(50, 10), (0, 10)])], "malformed"),
            ("an extent of nothing", [root, Self.sparse("a", in: 0, size: 100, [(10, 0)])], "malformed"),
            ("an extent behind the end", [root, Self.sparse("a", in: 0, size: 100, [(90, 11)])], "malformed"),
            ("an extent that overflows", [root, Self.sparse("a", in: 0, size: 100, [(90, .max)])], "too-large"),
        ]
    }
}
