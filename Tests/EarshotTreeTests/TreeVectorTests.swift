import Foundation
import Testing

@testable import EarshotTree

/// The published vectors of the tree format, for other implementations. Where `EARSHOT_WRITE_VECTORS` names a folder
/// they are written there anew, for when the format itself changes.
@Suite struct TreeVectorTests {
    private struct Good: Codable, Equatable {
        let name: String
        let hex: String
        /// By entry: its path, `directory`, `file`, `sparse` or `link`, and where its data is in the stream.
        let entries: [[String]]
        /// Bytes of the whole stream.
        let size: UInt64
    }

    private struct Bad: Codable, Equatable {
        let name: String
        let hex: String
        let error: String
    }

    private struct File: Codable, Equatable {
        let good: [Good]
        let bad: [Bad]
    }

    private static func hex(_ bytes: some Sequence<UInt8>) -> String { bytes.map { String(format: "%02x", $0) }.joined() }

    private static func bytes(_ hex: String) -> [UInt8] {
        let digits = Array(hex.utf8)
        return stride(from: 0, to: digits.count, by: 2).compactMap {
            UInt8(String(decoding: digits[$0..<$0 + 2], as: UTF8.self), radix: 16)
        }
    }

    private static func good(_ name: String, _ bytes: [UInt8]) throws -> Good {
        let manifest = try TreeManifest(decoding: bytes)
        let entries = (0..<manifest.count).map { index in
            let kind =
                switch manifest[index].content {
                case .directory: "directory"
                case .file: "file"
                case .sparse: "sparse"
                case .link: "link"
                }
            let data = manifest.data(of: index)
            return [manifest.pathText(of: index), kind, "\(data.lowerBound)-\(data.upperBound)"]
        }
        return Good(name: name, hex: Self.hex(bytes), entries: entries, size: manifest.size)
    }

    private static func made() throws -> File {
        File(
            good: [
                try Self.good("an empty directory", TreeFixtures.raw([TreeFixtures.root])),
                try Self.good("every kind of entry", TreeFixtures.raw(TreeFixtures.example)),
            ],
            bad: TreeFixtures.lies.map { Bad(name: $0.name, hex: Self.hex(TreeFixtures.raw($0.entries)), error: $0.error) })
    }

    @Test func theCodecAgreesWithTheVectors() throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let made = try Self.made()
        if let folder = ProcessInfo.processInfo.environment["EARSHOT_WRITE_VECTORS"] {
            let data = try encoder.encode(made) + [UInt8(ascii: "\n")]
            try data.write(to: URL(fileURLWithPath: folder).appendingPathComponent("trees.json"))
        }
        let folder = try #require(Bundle.module.url(forResource: "Vectors", withExtension: nil))
        let published = try JSONDecoder().decode(File.self, from: Data(contentsOf: folder.appendingPathComponent("trees.json")))
        #expect(published == made)
        #expect(published.good.count == 2 && published.bad.count > 20)
        for vector in published.good { #expect(try Self.good(vector.name, Self.bytes(vector.hex)) == vector) }
        for vector in published.bad {
            #expect(refusal { _ = try TreeManifest(decoding: Self.bytes(vector.hex)) } == vector.error, "\(vector.name)")
        }
    }
}
