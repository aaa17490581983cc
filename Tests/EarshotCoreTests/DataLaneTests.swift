import EarshotWire
import Testing

@testable import EarshotCore

/// The transitions of ``DataLane``: one line for the action, and one for the consequences of the state.
@Suite struct DataLaneTests {
    private let token = DataToken()

    @Test func theInitiatorDials() {
        var (lane, action) = DataLane.begin(isInitiator: true)
        #expect(action == .wait)
        #expect(lane.attached() == .drop)
        #expect(lane.receivedTicket(self.token) == .dial(self.token))
        #expect(lane.receivedTicket(self.token) == .wait)
        #expect(lane.receivedUnavailable() == .wait)
        #expect(lane.attached() == .use)
        #expect(lane.attached() == .drop)
        #expect(lane.expired() == .wait)
        #expect(lane.dialFailed() == .wait)
    }

    @Test func theResponderDialsWhereTheInitiatorCannot() {
        var (initiator, _) = DataLane.begin(isInitiator: true)
        var (responder, action) = DataLane.begin(isInitiator: false)
        #expect(action == .issueTicket)
        #expect(initiator.receivedTicket(self.token) == .dial(self.token))
        #expect(initiator.dialFailed() == .swapSides)
        #expect(responder.receivedUnavailable() == .wait)
        #expect(responder.receivedTicket(self.token) == .dial(self.token))
        #expect(responder.attached() == .use)
        #expect(initiator.attached() == .use)
    }

    @Test func neitherCanDial() {
        var (initiator, _) = DataLane.begin(isInitiator: true)
        var (responder, _) = DataLane.begin(isInitiator: false)
        _ = initiator.receivedTicket(self.token)
        #expect(initiator.dialFailed() == .swapSides)
        _ = responder.receivedUnavailable()
        _ = responder.receivedTicket(self.token)
        #expect(responder.dialFailed() == .giveUpAndSay)
        #expect(initiator.receivedUnavailable() == .giveUp)
        // Late events change nothing.
        #expect(initiator.receivedUnavailable() == .wait)
        #expect(initiator.attached() == .drop)
        #expect(responder.attached() == .drop)
    }

    @Test(arguments: [true, false]) func aLaneWithoutAnAnswerIsGivenUp(_ isInitiator: Bool) {
        var (lane, _) = DataLane.begin(isInitiator: isInitiator)
        #expect(lane.expired() == .giveUp)
        #expect(lane.expired() == .wait)
        #expect(lane.receivedTicket(self.token) == .wait)
        #expect(lane.attached() == .drop)
    }

    @Test func aTicketToTheSideThatHasGivenOneIsIgnored() {
        var (lane, _) = DataLane.begin(isInitiator: false)
        #expect(lane.receivedTicket(self.token) == .wait)
        #expect(lane.attached() == .use)
    }
}
