import EarshotWire
import Testing

@testable import EarshotCore

@Suite struct TreeListTurnsTests {
    private let alice = PeerID(subjectPublicKeyInfo: [1])
    private let bob = PeerID(subjectPublicKeyInfo: [2])
    private let ids = (0..<4).map { _ in ResourceID.random() }

    private func begin(_ numbers: [Int], _ turns: inout TreeListTurns) -> [Bool] {
        numbers.map { turns.begin(self.ids[$0], of: self.alice) }
    }

    private func end(_ numbers: [Int], _ turns: inout TreeListTurns) -> [Int?] {
        numbers.map { number in turns.end(self.ids[number]).flatMap { self.ids.firstIndex(of: $0) } }
    }

    @Test func oneOfAPeerAtATime() {
        var turns = TreeListTurns()
        let begun = self.begin([0, 1, 2], &turns)
        #expect(begun == [true, false, false])
        let others = turns.begin(self.ids[3], of: self.bob)
        #expect(others, "another peer's is its own affair")
        // Each has one turn, in the order of the offers.
        let next = self.end([0, 0, 1, 2], &turns)
        #expect(next == [1, nil, 2, nil])
        let again = self.begin([0], &turns)
        #expect(again == [true])
    }

    @Test func oneThatWaitsMayLeave() {
        var turns = TreeListTurns()
        let begun = self.begin([0, 1, 2], &turns)
        #expect(begun == [true, false, false])
        let next = self.end([1, 0], &turns)
        #expect(next == [nil, 2])
    }

    @Test func askedTwiceItIsTheSame() {
        var turns = TreeListTurns()
        let begun = self.begin([0, 0, 1, 1], &turns)
        #expect(begun == [true, true, false, false])
        let next = self.end([0], &turns)
        #expect(next == [1])
        let again = self.begin([1], &turns)
        #expect(again == [true])
        // Files are not known here.
        let last = self.end([1, 3], &turns)
        #expect(last == [nil, nil])
    }
}
