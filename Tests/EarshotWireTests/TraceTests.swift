import EarshotWire
import Foundation
import NIOCore
import Testing

/// The trace of a whole connection that is published, and shown in the specification.
@Suite struct TraceTests {
    private static let page =
        ((#filePath as NSString).deletingLastPathComponent as NSString).appendingPathComponent(
            "../../Sources/EarshotWire/EarshotWire.docc/Trace.md")

    @Test func itIsWhatTheMachinesSay() throws {
        let trace = try TraceMaker.make()
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let data = try encoder.encode(trace) + Data("\n".utf8)
        if let folder = ProcessInfo.processInfo.environment["EARSHOT_WRITE_VECTORS"] {
            try data.write(to: URL(fileURLWithPath: folder).appendingPathComponent("trace.json"))
            try Data(trace.text.utf8).write(to: URL(fileURLWithPath: folder).appendingPathComponent("trace.txt"))
        } else {
            #expect(try Data(contentsOf: #require(Vectors.folder).appendingPathComponent("trace.json")) == data)
            // And the page shows these bytes.
            #expect(try String(contentsOfFile: Self.page, encoding: .utf8).contains(trace.text), "Trace.md shows something else")
        }
    }

    /// Without the machines: the bytes of each side of each connection are the frames that the steps name.
    @Test func itDecodesToTheFramesThatItNames() throws {
        let trace = try Vectors.load("trace", as: Trace.self)
        #expect(trace.steps.count > 40)
        for connection in ["control", "data 1", "data 2"] {
            for side in ["alice", "bob"] {
                let steps = trace.steps.filter { $0.connection == connection && $0.from == side && $0.frame != "close" }
                let sent = try steps.flatMap { try #require(bytes(hexadecimal: $0.hex)) }
                #expect(try self.names(in: sent) == steps.map(\.frame), "\(connection), \(side)")
            }
        }
    }

    /// All at once, and byte by byte.
    private func names(in sent: [UInt8]) throws -> [String] {
        let whole = try self.names(in: [ByteBuffer(bytes: sent)])
        // Data comes out in as many pieces as it comes in.
        let isWhole = { (name: String) in !["data", "stream-data", "resource-chunk"].contains(name) }
        #expect(try self.names(in: sent.map { ByteBuffer(bytes: [$0]) }).filter(isWhole) == whole.filter(isWhole))
        return whole
    }

    private func names(in pieces: [ByteBuffer]) throws -> [String] {
        var (preamble, decoder, data) = (PreambleDecoder(), FrameDecoder(), DataFrameDecoder())
        var (names, isData) = ([String](), false)
        for piece in pieces {
            var piece = piece
            guard try preamble.consume(&piece) else { continue }
            if names.isEmpty { names.append("preamble") }
            if !isData {
                decoder.feed(piece)
                while !isData, let frame = try decoder.next() {
                    names.append(Vectors.name(of: frame.type))
                    if case .proof = frame { decoder.phase = .proven }
                    if case .dataAttach = frame { isData = true }
                }
                piece = isData ? decoder.takeRest() : ByteBuffer()
            }
            data.feed(piece)
            while let next = try data.next() {
                if case .end = next { names.append("data-end") } else if names.last != "data" { names.append("data") }
            }
        }
        return names
    }
}
