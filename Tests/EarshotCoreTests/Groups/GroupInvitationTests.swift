import EarshotWire
import OrderedCollections
import Testing

@testable import EarshotCore
@testable import EarshotWire

/// Invitations to groups that end otherwise than by their answer.
@Suite struct GroupInvitationTests {
    /// Also where it is withdrawn while the seat is being signed, or written.
    @Test(arguments: [true, false]) func anInvitationThatIsWithdrawnBeforeTheSeatIsOnDiskLetsNobodyIn(isSigned: Bool) throws {
        var bench = try GroupBench(2)
        try bench.connectAll()
        let id = try bench.create(0)
        bench.peers[0].isDiskHeld = isSigned
        let joining = try bench.beginJoining(1, by: 0, to: id)
        bench.peers[0].releaseSignature()
        if isSigned { bench.peers[0].releaseSignatures() }
        let invitation = try #require(bench.peers[0].pending.first)
        bench.peers[0].call(.withdraw(invitation))
        bench.releaseSignatures(of: 0)
        bench.peers[0].releaseDisk()
        bench.settle()
        #expect(bench.members(id, at: 0) == [0] && bench.group(id, at: 1) == nil)
        #expect(bench.peers[0].groupsOnDisk[id]?.records.count == 2, "its seat is gone from the disk")
        #expect(bench.peers[1].answers[joining]?.error == .cancelled)
    }
}
