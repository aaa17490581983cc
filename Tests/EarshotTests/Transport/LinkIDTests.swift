import Testing

@testable import Earshot

@Suite struct LinkIDTests {
    @Test func aConnectionsNameIsNeverGivenTwice() {
        let ids = (0..<1_000).map { _ in LinkID.next() }
        #expect(Set(ids).count == ids.count)
    }
}
