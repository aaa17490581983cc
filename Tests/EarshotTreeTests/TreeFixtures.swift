import Foundation
import Testing

@testable import EarshotTree

/// Manifests for tests: good ones, and raw ones that no rule has looked at.
enum TreeFixtures {
    static let time = TreeEntry.Time(seconds: 1_700_000_000, nanoseconds: 123_456_789)

    static func directory(_ name: String, in parent: Int, mode: UInt16 = 0o755) -> TreeEntry {
        TreeEntry(parent: parent, name: Array(name.utf8), mode: mode, modified: self.time, content: .directory)
    }

    static func file(_ name: String, in parent: Int, size: UInt64 = 0, mode: UInt16 = 0o644) -> TreeEntry {
        TreeEntry(parent: parent, name: Array(name.utf8), mode: mode, modified: self.time, content: .file(size: size))
    }

    static func sparse(_ name: String, in parent: Int, size: UInt64, _ extents: [(UInt64, UInt64)]) -> TreeEntry {
        TreeEntry(
            parent: parent, name: Array(name.utf8), mode: 0o600, modified: self.time,
            content: .sparse(size: size, TreeEntry.Extents(extents.map { TreeEntry.Extent(offset: $0.0, length: $0.1) })))
    }

    static func link(_ name: String, in parent: Int, to target: String) -> TreeEntry {
        TreeEntry(parent: parent, name: Array(name.utf8), mode: 0o777, modified: self.time, content: .link(target: Array(target.utf8)))
    }

    static let root = Self.directory("", in: 0)

    /// Returns the encoded header and entries without checks, even if they break the rules.
    static func raw(_ entries: [TreeEntry], count: Int? = nil, data: UInt64? = nil) -> [UInt8] {
        var body: [UInt8] = []
        for entry in entries { entry.encode(into: &body) }
        var bytes = TreeLimits.magic
        bytes.append(integer: UInt32(count ?? entries.count))
        bytes.append(integer: UInt32(body.count))
        bytes.append(integer: data ?? entries.reduce(0) { $0 &+ ($1.dataLength ?? 0) })
        return bytes + body
    }

    static func decode(_ bytes: [UInt8]) throws(TreeError) -> TreeManifest { try TreeManifest(decoding: bytes) }

    /// A few entries of every kind.
    static let example: [TreeEntry] = [
        Self.root,
        Self.directory("bin", in: 0, mode: 0o700), Self.directory("empty", in: 0), Self.file("line\nbreak", in: 0, size: 3),
        Self.link("there", in: 0, to: "bin/tool"), Self.file("ünï", in: 0, mode: 0),
        Self.link("back", in: 1, to: "../line\nbreak"), Self.sparse("holes", in: 1, size: 1 << 40, [(4096, 4096), (1 << 30, 10)]),
        Self.file("tool", in: 1, size: 5, mode: 0o755),
    ]
}

/// Returns the vectors' name for the kind of an error.
func word(_ error: TreeError) -> String {
    switch error {
    case .malformed: "malformed"
    case .nameRejected: "name-rejected"
    case .tooLarge: "too-large"
    case .unsupported: "unsupported"
    case .sourceChanged: "source-changed"
    case .unreadable: "unreadable"
    case .file: "file"
    }
}

func refusal(_ body: () throws -> Void) -> String? {
    do {
        try body()
        return nil
    } catch let error as TreeError {
        return word(error)
    } catch {
        return "\(error)"
    }
}
