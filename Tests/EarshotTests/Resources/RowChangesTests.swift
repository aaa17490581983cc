import EarshotWire
import Foundation
import Testing

@testable import Earshot
@testable import EarshotCore

/// Rows that are created, changed and removed before the disk is ready.
@Suite struct RowChangesTests {
    private func row(_ id: ResourceID, _ state: Resource.State = .offered) -> Resource {
        Resource(
            id: id, direction: .incoming, peerID: PeerID(subjectPublicKeyInfo: [1]), peerName: "x", name: "x", kind: .file, size: 1,
            state: state, createdAt: Date(timeIntervalSince1970: 1))
    }

    private func stored(_ id: ResourceID) -> StoredTransfer {
        StoredTransfer(id: id, source: .none, isTaken: true, expiresAt: Date(timeIntervalSince1970: 2))
    }

    @Test func ofAFloodNothingIsLeft() {
        var changes = RowChanges()
        for number in 0..<20_000 as Range<UInt64> {
            let id = ResourceID(high: 0, low: number)
            changes.put(self.row(id), isNew: true)
            changes.put(self.stored(id))
            changes.put(self.row(id, .cancelled))
            changes.removeTransfer(id)
            changes.remove(id, nil)
        }
        #expect(changes.count == 0 && changes.changes.isEmpty)
    }

    @Test func eachRowIsWrittenOnceAsItIsNow() {
        let id = ResourceID.random()
        var changes = RowChanges()
        changes.put(self.row(id), isNew: true)
        changes.put(self.stored(id))
        #expect(changes.changes == [.putResource(self.row(id)), .putTransfer(self.stored(id))])
        changes.put(self.row(id, .failed))
        changes.removeTransfer(id)
        #expect(changes.changes == [.putResource(self.row(id, .failed))], "the store has no transfer of it")
    }

    @Test func whatTheStoreHasIsRemovedThere() {
        let id = ResourceID.random()
        let ended = EndedTransfer(id: id, peerID: PeerID(subjectPublicKeyInfo: [1]), endedAt: WallTime(milliseconds: 3000))
        var changes = RowChanges()
        changes.put(self.row(id, .completed))
        changes.removeTransfer(id)
        #expect(changes.changes == [.putResource(self.row(id, .completed)), .removeTransfer(id)])
        changes.remove(id, ended)
        #expect(changes.changes == [.removeResource(id), .putEndedTransfer(ended)])
        // The same id is used again.
        changes.put(self.row(id), isNew: true)
        #expect(changes.changes == [.removeResource(id), .putResource(self.row(id)), .putEndedTransfer(ended)])
        changes.remove(id, nil)
        #expect(changes.changes == [.removeResource(id)])
    }

    @Test func rowsAreWrittenInTheOrderInWhichTheyCame() {
        var changes = RowChanges()
        let ids = (0..<50 as Range<UInt64>).map { ResourceID(high: 0, low: $0) }
        for id in ids { changes.put(self.row(id), isNew: true) }
        for id in ids.reversed() { changes.put(self.row(id, .failed)) }
        #expect(changes.changes == ids.map { .putResource(self.row($0, .failed)) })
    }
}
