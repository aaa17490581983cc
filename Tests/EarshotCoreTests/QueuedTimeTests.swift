import EarshotWire
import Testing

@testable import EarshotCore

/// How long queued messages wait, whatever the clock says.
@Suite struct QueuedTimeTests {
    private let bob = peerID(1)

    /// A board without a clock of its own starts in 1970, or ahead: a message waits for as long as it was to, and no longer.
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

    /// Its clock was wrong when it was queued, and right when the daemon is started again.
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

    /// A row says more than any message has, since its release wrote it by a clock that was ahead.
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
