import NIOCore
import Testing

@testable import EarshotCore

@Suite struct UnacknowledgedTests {
    @Test func keepsWhatIsNotTaken() {
        var kept = Unacknowledged(from: 10)
        kept.append(ByteBuffer(string: "abc"))
        kept.append(ByteBuffer(string: "def"))
        #expect(kept.count == 6)
        kept.drop(before: 9)
        #expect(kept.count == 6)
        kept.drop(before: 14)
        #expect((kept.start, kept.count) == (14, 2))
        #expect(kept.pieces(upTo: 1) == [ByteBuffer(string: "e"), ByteBuffer(string: "f")])
        kept.drop(before: 99)
        #expect(kept.count == 0 && kept.pieces(upTo: 1).isEmpty)
    }

    @Test func smallPiecesAreJoinedAndLargeOnesCut() {
        var kept = Unacknowledged(from: 0)
        for number in 0..<1000 { kept.append(ByteBuffer(integer: UInt8(truncatingIfNeeded: number))) }
        #expect(kept.pieces(upTo: 1000).count == 1)
        kept.append(ByteBuffer(repeating: 1, count: 100_000))
        #expect(kept.pieces(upTo: 50_000).map(\.readableBytes) == [1000, 50_000, 50_000])
        kept.drop(before: 1500)
        #expect(kept.pieces(upTo: 1 << 20).map(\.readableBytes) == [99_500])
    }
}
