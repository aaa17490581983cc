import EarshotWire
import OrderedCollections
import Testing

@testable import EarshotCore
@testable import EarshotWire

/// Groups that are gone and being joined anew while something of the earlier time is still on its way.
@Suite struct GroupRejoinTests {
    @Test func aRowOfTheEarlierTimeIsNoneOfTheNextOnes() throws {
        var (bench, id) = try GroupBench.group(of: 2)
        bench.peers[1].isDiskHeld = true
        bench.ask(0, .rename("team", to: "other"))
        bench.ask(0, .remove("other", peer: "peer1", withInvited: false))
        #expect(bench.left(id, at: 1) == [.removed])
        try bench.beginJoining(1, by: 0, to: id)
        bench.peers[1].releaseDisk()
        #expect(bench.peers[1].groupsOnDisk[id] == nil, "it would be in the group at its next start")
        bench.releaseSignatures(of: 0)
        #expect(bench.members(id, at: 1) == [0, 1] && bench.peers[1].groupsOnDisk[id] != nil)
    }
}
