import EarshotWire
import Testing

@testable import EarshotCore

/// The waiting time of queued messages is independent of the wall clock.
@Suite struct QueuedTimeTests {
    private let bob = peerID(1)

    /// A board without a battery-backed clock starts in 1970, or ahead. A message waits for exactly its time nevertheless.
    @Test(arguments: [-1_900_000_000, -86_400, 86_400, 1_900_000_000]) func aClockThatIsWrongAtAStart(seconds: Int) throws {
        var (alice, link, _) = try CoreBench.inSession(with: self.bob)
        alice.lose(link)
        let id = try #require(try alice.send(to: self.bob, queue: true, timeout: .seconds(60))?.get()).id
        alice.wallAhead = .seconds(seconds)
        var again = alice.restarted()
        again.advance(.seconds(59))
        #expect(again.core.outgoingMessage(id)?.recipients.map(\.status) == [.queued])
        again.advance(.seconds(1))
        #expect(again.core.outgoingMessage(id)?.recipients.map(\.status) == [.unconfirmed])
    }

    /// The clock was wrong when the message was queued, and is correct when the daemon is restarted.
    @Test(arguments: [-1_900_000_000, 1_900_000_000]) func aClockThatWasWrongWhenItWasQueued(seconds: Int) throws {
        var (alice, link, _) = try CoreBench.inSession(with: self.bob)
        alice.lose(link)
        alice.wallAhead = .seconds(seconds)
        let id = try #require(try alice.send(to: self.bob, queue: true, timeout: .seconds(60))?.get()).id
        alice.wallAhead = .zero
        var again = alice.restarted()
        again.advance(.seconds(59))
        #expect(again.core.outgoingMessage(id)?.recipients.map(\.status) == [.queued])
        again.advance(.seconds(1))
        #expect(again.core.outgoingMessage(id)?.recipients.map(\.status) == [.unconfirmed])
    }

    /// A row has a later time than any message may have, because an earlier release wrote it by a clock that was ahead.
    @Test func outboxAgeLimitOfARow() throws {
        var (alice, link, _) = try CoreBench.inSession(with: self.bob)
        alice.lose(link)
        alice.runningAhead = .seconds(1_900_000_000)
        let id = try #require(try alice.send(to: self.bob, queue: true, timeout: .seconds(60))?.get()).id
        alice.runningAhead = .zero
        let again = alice.restarted()
        #expect(again.core.outgoing[id]?.deadline == again.now.monotonic + EarshotLimits.outboxAgeLimit)
    }
}
