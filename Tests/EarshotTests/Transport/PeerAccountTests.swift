import NIOEmbedded
import Testing

@testable import Earshot
@testable import EarshotWire

/// Creates a connection without a peer.
func deadConnection(of peer: PeerID, accounts: PeerAccounts = PeerAccounts()) throws -> Connection {
    let peer = ProvenPeer(
        id: peer, displayName: try DisplayName("bob"), publicKey: [], signatureScheme: .ed25519, version: 1, encryption: .required,
        transport: .tls, extensions: [], transcript: Transcript(initiatorHello: [], responderHello: [], transport: .tls))
    return Connection(
        channel: EmbeddedChannel(), peer: peer, isInitiator: true, dialledAddress: nil,
        account: accounts.account(of: peer.id))
}

/// The resources of this machine that peers use.
@Suite struct PeerAccountTests {
    private let accounts = PeerAccounts()

    @Test(arguments: [(true, EarshotLimits.unprocessedBytes), (false, EarshotLimits.strangersUnprocessedBytes)])
    func anAccountIsFullAtItsLimit(isMember: Bool, limit: Int) {
        let account = self.accounts.account(of: peerID(1))
        account.charge(limit - 1)
        #expect(account.hasRoom(isMember: isMember))
        let charge = Charge(1, to: account)
        #expect(!account.hasRoom(isMember: isMember))
        withExtendedLifetime(charge) {}
        account.giveBack(limit - 1)
    }

    @Test func aChargeIsGivenBackOnce() {
        let account = self.accounts.account(of: peerID(1))
        var charge: Charge? = Charge(100, to: account)
        let work = { [charge] in _ = charge }
        #expect(account.bytes == 100)
        charge = nil
        #expect(account.bytes == 100, "the work has it")
        withExtendedLifetime(work) {}
        #expect(self.accounts.bytes == account.bytes)
    }

    /// When all peers together hold much, each may hold little. A peer that holds less continues.
    @Test func allUnprocessedBytes() {
        let (one, other) = (self.accounts.account(of: peerID(1)), self.accounts.account(of: peerID(2)))
        one.charge(EarshotLimits.crowdedUnprocessedBytes)
        other.charge(EarshotLimits.allUnprocessedBytes - EarshotLimits.crowdedUnprocessedBytes - 1)
        #expect(one.hasRoom(isMember: true))
        other.charge(1)
        #expect(!one.hasRoom(isMember: true))
        one.giveBack(1)
        other.charge(1)
        #expect(one.hasRoom(isMember: true))
        one.giveBack(one.bytes)
        other.giveBack(other.bytes)
        #expect(self.accounts.bytes == 0)
    }

    /// A peer that returns on another connection keeps its charges.
    @Test func itBelongsToTheKey() throws {
        let first = try deadConnection(of: peerID(1), accounts: self.accounts)
        first.turns.begin(weight: 1000)
        let second = try deadConnection(of: peerID(1), accounts: self.accounts)
        #expect(second.turns.account.bytes == 1000)
        first.turnEnded(1000, isMember: false)
        #expect(second.turns.account.bytes == 0)
        #expect(self.accounts.count == 1)
    }

    @Test func itGoesWithItsLastHolder() {
        do {
            let charge = Charge(1, to: self.accounts.account(of: peerID(1)))
            #expect(self.accounts.count == 1)
            withExtendedLifetime(charge) {}
        }
        #expect(self.accounts.count == 0)
        #expect(self.accounts.bytes == 0)
    }

    @Test(arguments: [0, 1]) func muchUnprocessedBytes(missing: Int) {
        let calls = Box(0)
        let accounts = PeerAccounts { calls.withLock { $0 += 1 } }
        let account = accounts.account(of: peerID(1))
        for _ in 0..<2 {
            account.charge(EarshotLimits.muchUnprocessedBytes - missing)
            account.giveBack(EarshotLimits.muchUnprocessedBytes - missing - 1)
            account.giveBack(1)
        }
        #expect(calls.value == (missing == 0 ? 2 : 0), "once each time that much has become little")
    }

    @Test func whoWaitsIsCalledOnceThereIsRoom() {
        let account = self.accounts.account(of: peerID(1))
        let calls = Box(0)
        #expect(!account.waitForRoom(isMember: true) { calls.withLock { $0 += 1 } }, "there is room")
        account.charge(EarshotLimits.unprocessedBytes)
        #expect(account.waitForRoom(isMember: true) { calls.withLock { $0 += 1 } })
        #expect(calls.value == 0)
        account.giveBack(1)
        account.giveBack(EarshotLimits.unprocessedBytes - 1)
        #expect(calls.value == 1)
    }

    @Test func aPeerBeginsALimitedNumberOfTurnsAhead() throws {
        let turns = try deadConnection(of: peerID(1), accounts: self.accounts).turns
        let calls = Box(0)
        for _ in 0..<EarshotLimits.turnsAhead {
            #expect(turns.mayBegin)
            turns.begin(weight: 1)
        }
        #expect(!turns.mayBegin)
        #expect(turns.size == EarshotLimits.strangersTurnWork)
        #expect(turns.wait { calls.withLock { $0 += 1 } })
        turns.end(isMember: true)
        #expect(calls.value == 1)
        #expect(turns.size == EarshotLimits.turnWork)
        #expect(turns.mayBegin)
        turns.begin(weight: 1)
        turns.end(isMember: false)
        #expect(turns.size == EarshotLimits.strangersTurnWork, "a stranger again")
        turns.account.giveBack(turns.account.bytes)
    }
}
