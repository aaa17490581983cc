import EarshotWire
import Testing

@testable import EarshotCore

/// How long queued messages wait, whatever the clock says.
@Suite struct QueuedTimeTests {
    private let bob = peerID(1)

    /// With the clock set back meanwhile, a message waits after a start for no longer than it was to wait in all.
    @Test func aClockThatWasSetBack() throws {
        var (alice, link, _) = try CoreBench.inSession(with: self.bob)
        alice.lose(link)
        let id = try #require(try alice.send(to: self.bob, queue: true, timeout: .seconds(60))?.get()).id
        alice.wallAhead = .seconds(-86_400)
        var again = alice.restarted()
        again.advance(.seconds(59))
        #expect(again.core.outgoingMessage(id)?.recipients.map(\.status) == [.queued])
        again.advance(.seconds(1))
        #expect(again.core.outgoingMessage(id)?.recipients.map(\.status) == [.unconfirmed])
    }
}
