import EarshotWaiting
import Testing

@Suite(.timeLimit(.minutes(1))) struct ChangesTests {
    @Test func whatHasChangedBeforeIsNotWaitedFor() async {
        let changes = Changes()
        let seen = changes.count
        changes.tell()
        #expect(await changes.wait(after: seen))
        #expect(changes.count == seen + 1)
    }

    @Test func everyoneWhoWaitsIsWoken() async {
        let changes = Changes()
        await withTaskGroup(of: Bool.self) { group in
            let seen = changes.count
            for _ in 0..<10 { group.addTask { await changes.wait(after: seen) } }
            changes.tell()
            for await isTold in group { #expect(isTold) }
        }
    }

    @Test func aCancelledTaskWaitsNoMore() async {
        let changes = Changes()
        let seen = changes.count
        let waiting = Task { await changes.wait(after: seen) }
        waiting.cancel()
        #expect(await waiting.value == false)
        // The other waiting tasks return.
        async let other = changes.wait(after: seen)
        changes.tell()
        #expect(await other)
    }
}
