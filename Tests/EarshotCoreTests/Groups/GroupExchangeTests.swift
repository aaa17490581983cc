import EarshotWire
import OrderedCollections
import Testing

@testable import EarshotCore
@testable import EarshotWire

/// What members hear of a group from peers that they do not know for members.
@Suite struct GroupExchangeTests {
    /// It was let in, and the group dissolved, while the second was away.
    @Test func whoWasAwayHearsOfTheEndFromALaterMember() throws {
        var bench = try GroupBench(3)
        try bench.connect(0, 1)
        let id = try bench.create(0)
        try bench.letIn(1, by: 0, to: id)
        bench.disconnect(0, 1)
        try bench.connect(0, 2)
        try bench.letIn(2, by: 0, to: id)
        #expect(bench.ask(0, .dissolve("team")) == .done)
        bench.disconnect(0, 2)
        bench.restart(2)
        try bench.connect(1, 2)
        #expect(bench.left(id, at: 1) == [.dissolved])
    }
}
