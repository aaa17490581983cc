import EarshotWire
import Testing

@testable import EarshotCore

@Suite struct UnwrittenTransfersTests {
    private static func row(_ number: UInt64) -> Resource {
        Resource(
            id: ResourceID(high: 0, low: number), direction: .outgoing, peerID: peerID(2), peerName: "bob", name: "x", kind: .file,
            size: 9, state: .completed, created: WallTime(milliseconds: 0))
    }

    /// A body in the spool is removed once, and only after the row of its end is written.
    @Test func anEndIsWrittenBeforeItsBodyGoes() {
        var transfers = UnwrittenTransfers()
        let (first, second) = (Self.row(1), Self.row(2))
        transfers.ended(first)
        transfers.ended(second)
        #expect(transfers.takeNewEnds() == [first, second] && transfers.takeNewEnds() == [])
        transfers.refuse([first.id])
        #expect(transfers.written([first, second, Self.row(3)]) == [second.id], "the disk refused the first, and the third has no body")
        let again = transfers.takeRefused()
        #expect(again.ids == [first.id] && again.ends == [first])
        #expect(transfers.takeRefused().ids == [])
        #expect(transfers.written([first]) == [first.id] && transfers.written([first]) == [])
    }

    @Test func refusedRowsAreBounded() {
        var transfers = UnwrittenTransfers()
        transfers.ended(Self.row(0))
        let ids = (0...UInt64(EarshotLimits.rememberedTransfers)).map { ResourceID(high: 0, low: $0) }
        transfers.refuse(ids)
        let again = transfers.takeRefused()
        #expect(again.ids == [ids[0]] + ids[2...], "the oldest without a body goes")
        #expect(again.ends == [Self.row(0)])
        transfers.refuse(Array(ids.dropLast()))
        #expect(transfers.takeRefused().ids == Array(ids.dropLast()))
    }
}
