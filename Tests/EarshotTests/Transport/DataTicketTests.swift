import EarshotWire
import Testing

@testable import Earshot

@Suite struct DataTicketTests {
    private let tickets = DataTickets()
    private let transfer = TransferID.random()
    private let now = ContinuousClock.now

    private func peer(_ key: UInt8 = 1) -> PeerID { PeerID(subjectPublicKeyInfo: [key]) }

    private func issue(_ transfer: TransferID? = nil) -> DataToken {
        let token = DataToken()
        self.tickets.expect(token, for: transfer ?? self.transfer, from: self.peer(), over: .tls, now: self.now) { _ in }
        return token
    }

    @Test func onceAndForItsPeerAlone() {
        let token = self.issue()
        #expect(self.tickets.claim(token, by: self.peer(2), over: .tls, now: self.now) == nil)
        #expect(self.tickets.claim(token, by: self.peer(), over: .plaintext, now: self.now) == nil)
        #expect(self.tickets.claim(DataToken(), by: self.peer(), over: .tls, now: self.now) == nil)
        #expect(self.tickets.claim(token, by: self.peer(), over: .tls, now: self.now)?.transfer == self.transfer)
        #expect(self.tickets.claim(token, by: self.peer(), over: .tls, now: self.now) == nil)
        #expect(!self.tickets.isExpecting)
    }

    @Test func aTicketExpiresAfterItsTime() {
        let edge = self.now + .seconds(WireLimits.dataTicketSeconds)
        #expect(self.tickets.claim(self.issue(), by: self.peer(), over: .tls, now: edge - .nanoseconds(1)) != nil)
        #expect(self.tickets.claim(self.issue(), by: self.peer(), over: .tls, now: edge) == nil)
        // Expired tickets are removed with the next one.
        _ = self.issue()
        self.tickets.expect(DataToken(), for: .random(), from: self.peer(), over: .tls, now: edge) { _ in }
        #expect(self.tickets.count == 1)
    }

    @Test func oneATransfer() {
        let first = self.issue()
        let second = self.issue()
        #expect(self.tickets.claim(first, by: self.peer(), over: .tls, now: self.now) == nil)
        _ = self.issue(.random())
        self.tickets.revoke(self.transfer)
        #expect(self.tickets.claim(second, by: self.peer(), over: .tls, now: self.now) == nil)
        #expect(self.tickets.count == 1)
    }
}
