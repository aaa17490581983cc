import EarshotWire
import Testing

@testable import EarshotCore

/// The choice between two control connections, and the addresses at which a peer is dialled.
@Suite struct LinkTests {
    private var core = NodeCore.bench()

    private mutating func prove(_ link: UInt64, isInitiator: Bool, after time: Duration, isOtherDead: Bool = false) throws -> [Effect] {
        var effects: [Effect] = []
        let input = Input.link(
            LinkID(number: link), .proven(try .of(peerID(1), isInitiator: isInitiator), isOtherDead: isOtherDead))
        self.core.handle(input, at: Now(after: time), into: &effects)
        return effects
    }

    private func closed(in effects: [Effect]) -> [LinkID: WireErrorCode?] {
        effects.reduce(into: [:]) { closed, effect in
            if case .close(let link, let refusal) = effect { closed[link] = .some(refusal?.code) }
        }
    }

    @Test(arguments: [(EarshotLimits.simultaneousDialTime - .nanoseconds(1), true), (EarshotLimits.simultaneousDialTime, false)])
    mutating func simultaneousDialTime(apart: Duration, isSimultaneous: Bool) throws {
        // The lower id has dialled the first connection, which stays if both were dialled at once.
        let isLower = peerID(100) < peerID(1)
        _ = try self.prove(1, isInitiator: isLower, after: .zero)
        let effects = try self.prove(2, isInitiator: !isLower, after: apart)
        let left = LinkID(number: isSimultaneous ? 2 : 1)
        #expect(self.closed(in: effects) == [left: .superseded])
        #expect(self.core.facts(of: peerID(1))?.link == LinkID(number: isSimultaneous ? 1 : 2))
    }

    @Test mutating func aDeadConnectionGivesWayAtOnce() throws {
        let isLower = peerID(100) < peerID(1)
        _ = try self.prove(1, isInitiator: isLower, after: .zero)
        _ = try self.prove(2, isInitiator: !isLower, after: .zero, isOtherDead: true)
        #expect(self.core.facts(of: peerID(1))?.link == LinkID(number: 2))
    }

    /// The peer's row stays published, and is not reported as lost and found.
    @Test mutating func aStrangersRowStaysWhereItsConnectionIsSuperseded() throws {
        _ = try self.prove(1, isInitiator: true, after: .zero)
        let events = try self.prove(2, isInitiator: true, after: .seconds(60)).filter { if case .publish = $0 { true } else { false } }
        #expect(events == [])
        #expect(self.core.peers.count == 1)
    }

    /// The report of a dial's success takes another path than the connection's end, and may come after it.
    @Test(arguments: [peerID(1), peerID(200)], [true, false])
    func aPeerThatIsLostAtOnceIsDialledAgain(peer: PeerID, isEndFirst: Bool) throws {
        var alice = CoreBench()
        try alice.see(peer)
        alice.call(.invite(peer.description, context: [], timeout: nil))
        #expect(alice.dials == [peer])
        let link = try alice.prove(peer, isInitiator: true)
        if isEndFirst { alice.lose(link) }
        alice.handle(.dial(peer, .ended(nil)))
        if !isEndFirst { alice.lose(link) }
        alice.advance(EarshotLimits.higherPeerDialDelay)
        #expect(alice.dials == [peer, peer])
        #expect(try alice.invites(on: alice.prove(peer, isInitiator: true)).count == 1)
    }

    @Test func everyAddressHasItsTurn() throws {
        let all = (1...20).map { SightedAddress(address: PeerAddress(host: "10.0.0.\($0)", zone: nil, port: 7), isLoopback: false) }
        let limit = EarshotLimits.addressesPerDial
        func plan(_ count: Int, _ last: PeerAddress? = nil, _ turn: Int) -> [PeerAddress] {
            DialPlan(seen: Array(all.prefix(count)), lastGood: last, needsSighting: false, turn: turn).addresses { _ in true }
        }
        #expect(plan(limit, nil, 0) == all.prefix(limit).map(\.address))
        var seen: Set<PeerAddress> = []
        for turn in 0..<3 {
            let next = plan(20, nil, turn)
            #expect(next.count == limit && Set(next).count == limit)
            seen.formUnion(next)
        }
        #expect(seen == Set(all.map(\.address)))
        // The last good address is tried every time: first if it is still seen, else last.
        let gone = PeerAddress(host: "10.0.0.99", zone: nil, port: 7)
        for turn in 0..<3 {
            let next = plan(20, gone, turn)
            #expect(next.last == gone && next.count == limit && Set(next).count == limit)
            let there = plan(20, all[19].address, turn)
            #expect(there.first == all[19].address && there.count == limit && Set(there).count == limit)
        }
        // The turn may have any value.
        #expect(plan(20, nil, .max).count == limit && plan(20, nil, .min).count == limit)
    }

    @Test func onlyWhatIsPermittedIsDialled() {
        let seen = [
            SightedAddress(address: PeerAddress(host: "127.0.0.1", zone: nil, port: 7), isLoopback: false),
            SightedAddress(address: PeerAddress(host: "10.0.0.1", zone: nil, port: 7), isLoopback: false),
        ]
        let last = PeerAddress(host: "10.0.0.9", zone: nil, port: 7)
        let plan = DialPlan(seen: seen, lastGood: last, needsSighting: false, turn: 0)
        #expect(plan.addresses { $0.address.host.hasPrefix("10.") } == [seen[1].address, last])
        #expect(plan.addresses { _ in false } == [last])
        #expect(DialPlan(seen: seen, lastGood: last, needsSighting: true, turn: 0).addresses { _ in false } == [])
    }
}
