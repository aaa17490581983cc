import EarshotWaiting
import Testing

@Suite(.timeLimit(.minutes(1))) struct OneShotTests {
    @Test func everyTaskGetsTheValueBeforeAndAfterItIsSet() async {
        let shot = OneShot<Int>()
        await withTaskGroup(of: Int.self) { group in
            for _ in 0..<10 { group.addTask { await shot.value() } }
            shot.settle(7)
            for _ in 0..<10 { group.addTask { await shot.value() } }
            for await value in group { #expect(value == 7) }
        }
    }

    @Test func onlyTheFirstValueCounts() async {
        let shot = OneShot<Int>()
        shot.settle(7)
        shot.settle(8)
        #expect(await shot.value() == 7)
    }

    /// The producer must always set the value, so a cancelled task waits for it too.
    @Test func aCancelledTaskStillGetsTheValue() async {
        let shot = OneShot<Int>()
        let waiting = Task { await shot.value() }
        waiting.cancel()
        shot.settle(7)
        #expect(await waiting.value == 7)
    }
}
