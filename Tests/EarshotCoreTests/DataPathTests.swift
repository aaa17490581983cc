import EarshotWire
import Testing

@testable import EarshotCore

/// The transitions of data paths, one per line: an event, and the resulting effects.
@Suite struct DataPathTests {
    private static let bob = PeerID(subjectPublicKeyInfo: [1])
    private static let carol = PeerID(subjectPublicKeyInfo: [2])
    private static let link = LinkID(number: 7)
    private static let transfer = TransferID(high: 0, low: 1)
    private static let start = MonotonicInstant(nanoseconds: 0)

    private var core = NodeCore.bench()

    /// Returns the effects of an event on the transfer.
    private mutating func on(_ event: DataPathEvent, at now: MonotonicInstant = start) -> [DataPathEffect] {
        self.on(.dataPath(Self.transfer, event), at: now).compactMap {
            if case .dataPath(Self.transfer, let effect) = $0 { effect } else { nil }
        }
    }

    private mutating func on(_ input: Input, at now: MonotonicInstant = start) -> [Effect] {
        var effects: [Effect] = []
        self.core.handle(input, at: Now(monotonic: now, wall: WallTime(milliseconds: 0)), into: &effects)
        return effects
    }

    private func wanted(_ peer: PeerID = bob, isInitiator: Bool, attempt: UInt64 = 1) -> DataPathEvent {
        .wanted(peer, link: Self.link, isInitiator: isInitiator, attempt: attempt)
    }

    private var token: DataToken {
        get throws { try #require(DataToken(bytes: [UInt8](repeating: 9, count: WireLimits.dataToken))) }
    }

    /// Returns the token of the sent ticket, and the token that is expected for it.
    private func ticket(in effects: [Effect]) throws -> (sent: DataToken, expected: DataToken) {
        let sent = effects.lazy.compactMap { effect -> DataToken? in
            guard case .send(Self.link, let frames) = effect, case .dataTicket(let ticket)? = frames.last else { return nil }
            return ticket.token
        }
        let expected = effects.lazy.compactMap { effect -> DataToken? in
            guard case .dataPath(Self.transfer, .expect(let token, let peer, let link, attempt: 1)) = effect else { return nil }
            return peer == Self.bob && link == Self.link ? token : nil
        }
        return (try #require(sent.first), try #require(expected.first))
    }

    // MARK: The side that opened the control connection

    @Test mutating func theInitiatorWaitsForATicketAndDials() throws {
        #expect(self.on(self.wanted(isInitiator: true)) == [])
        let token = try self.token
        #expect(self.on(.ticket(token, from: Self.bob)) == [.dial(token, Self.bob, over: Self.link, attempt: 1)])
        #expect(self.on(.ticket(token, from: Self.bob)) == [])
        #expect(self.on(.attached(attempt: 1)) == [.revoke, .use(attempt: 1)])
        #expect(self.core.nextDeadline == nil)
        #expect(self.core.dataPathCount == 1)
        #expect(self.on(.over) == [.revoke, .close(attempt: 1)])
        #expect(self.core.dataPathCount == 0)
    }

    @Test mutating func whereItCannotDialTheOtherSideDoes() throws {
        _ = self.on(self.wanted(isInitiator: true))
        _ = self.on(.ticket(try self.token, from: Self.bob))
        let effects = self.on(.dataPath(Self.transfer, .dialFailed(attempt: 1)))
        let (sent, expected) = try self.ticket(in: effects)
        #expect(sent == expected)
        let ticket = DataTicket(transfer: Self.transfer, token: sent)
        #expect(effects.contains(.send(Self.link, [.dataUnavailable(Self.transfer), .dataTicket(ticket)])))
        #expect(self.on(.unavailable(from: Self.bob)) == [.revoke, .doWithout(attempt: 1)])
    }

    // MARK: The responder

    @Test mutating func theResponderExpectsBeforeItSaysSo() throws {
        let effects = self.on(.dataPath(Self.transfer, self.wanted(isInitiator: false)))
        let (sent, expected) = try self.ticket(in: effects)
        #expect(sent == expected)
        let isExpectedFirst = if case .dataPath? = effects.first, case .send? = effects.last { true } else { false }
        #expect(isExpectedFirst)
        #expect(self.on(.attached(attempt: 1)) == [.revoke, .use(attempt: 1)])
        #expect(self.on(.attached(attempt: 1)) == [.drop], "one is enough")
    }

    @Test mutating func whereNeitherCanDialBothDoWithout() throws {
        _ = self.on(self.wanted(isInitiator: false))
        let token = try self.token
        #expect(self.on(.unavailable(from: Self.bob)) == [])
        #expect(self.on(.ticket(token, from: Self.bob)) == [.dial(token, Self.bob, over: Self.link, attempt: 1)])
        #expect(
            self.on(.dataPath(Self.transfer, .dialFailed(attempt: 1))) == [
                .send(Self.link, [.dataUnavailable(Self.transfer)]), .dataPath(Self.transfer, .revoke),
                .dataPath(Self.transfer, .doWithout(attempt: 1)),
            ])
        #expect(self.on(.dialFailed(attempt: 1)) == [])
    }

    // MARK: Timeouts

    @Test(arguments: [true, false]) mutating func dataDialTime(isInitiator: Bool) {
        _ = self.on(self.wanted(isInitiator: isInitiator))
        let due = Self.start + EarshotLimits.dataDialTime
        #expect(self.core.nextDeadline == due)
        #expect(self.on(.deadline, at: due - .nanoseconds(1)) == [])
        #expect(
            self.on(.deadline, at: due) == [.dataPath(Self.transfer, .revoke), .dataPath(Self.transfer, .doWithout(attempt: 1))])
        #expect(self.on(.attached(attempt: 1), at: due) == [.drop])
    }

    /// After a suspend, a deadline and other events are due at once: the deadline is handled first.
    @Test mutating func whatIsDueGoesFirst() {
        _ = self.on(self.wanted(isInitiator: false))
        let later = Self.start + EarshotLimits.dataDialTime + .seconds(3600)
        #expect(self.on(.attached(attempt: 1), at: later) == [.revoke, .doWithout(attempt: 1), .drop])
    }

    // MARK: Several transfers

    /// The end of the first of several dials.
    enum End: CaseIterable {
        case attached, dialFailed, expired, over
    }

    @Test(arguments: End.allCases) mutating func dialsAboveTheLimitWaitForTheirTurn(_ end: End) throws {
        let count = UInt64(EarshotLimits.dataDials) + 2
        let token = try self.token
        let transfers = (0..<count).map { TransferID(high: 0, low: $0) }
        for transfer in transfers { _ = self.on(.dataPath(transfer, self.wanted(isInitiator: true, attempt: transfer.low))) }
        func dials(_ effects: [Effect]) -> [TransferID] {
            effects.compactMap {
                guard case .dataPath(let transfer, let effect) = $0 else { return nil }
                return effect == .dial(token, Self.bob, over: Self.link, attempt: transfer.low) ? transfer : nil
            }
        }
        let dialled = transfers.flatMap { dials(self.on(.dataPath($0, .ticket(token, from: Self.bob)))) }
        #expect(dialled == Array(transfers.prefix(EarshotLimits.dataDials)), "the others wait for their turn")
        let carols = TransferID(high: 1, low: 0)
        _ = self.on(.dataPath(carols, self.wanted(Self.carol, isInitiator: true, attempt: 0)))
        #expect(
            self.on(.dataPath(carols, .ticket(token, from: Self.carol)))
                == [.dataPath(carols, .dial(token, Self.carol, over: Self.link, attempt: 0))], "another peer has its own")
        let next: [Effect] =
            switch end {
            case .attached: self.on(.dataPath(transfers[0], .attached(attempt: 0)))
            case .dialFailed: self.on(.dataPath(transfers[0], .dialFailed(attempt: 0)))
            case .expired: self.on(.dataPath(transfers[0], .expired(attempt: 0)))
            case .over: self.on(.dataPath(transfers[0], .over))
            }
        #expect(dials(next) == [transfers[EarshotLimits.dataDials]])
        #expect(self.core.figures.dataDials == EarshotLimits.dataDials)
    }

    @Test mutating func aPeerThatIsGoneIsDialledForNone() throws {
        let token = try self.token
        _ = self.on(.link(Self.link, .proven(try .of(Self.bob), isOtherDead: false)))
        for number in 0...UInt64(EarshotLimits.dataDials) {
            let transfer = TransferID(high: 0, low: number)
            _ = self.on(.dataPath(transfer, self.wanted(isInitiator: true, attempt: number)))
            _ = self.on(.dataPath(transfer, .ticket(token, from: Self.bob)))
        }
        let isDialled = self.on(.link(Self.link, .closed(.lost))).contains {
            if case .dataPath(_, .dial) = $0 { true } else { false }
        }
        #expect(!isDialled)
        #expect(self.core.dataPathCount == 0)
    }

    // MARK: Unrelated events

    @Test mutating func othersTicketsAndEarlierAttemptsChangeNothing() throws {
        _ = self.on(self.wanted(isInitiator: true))
        #expect(self.on(.ticket(try self.token, from: Self.carol)) == [])
        #expect(self.on(.unavailable(from: Self.carol)) == [])
        #expect(self.on(self.wanted(isInitiator: true, attempt: 2)) == [.revoke, .close(attempt: 1)])
        #expect(self.on(.dialFailed(attempt: 1)) == [])
        #expect(self.on(.expired(attempt: 1)) == [])
        #expect(self.on(.attached(attempt: 1)) == [.drop])
        #expect(self.core.dataPathCount == 1)
    }

    @Test mutating func aPeerThatIsGoneTakesItsOwnAlong() throws {
        let links = [Self.bob: Self.link, Self.carol: LinkID(number: 8)]
        for (peer, link) in [(Self.bob, Self.link), (Self.carol, LinkID(number: 8))] {
            _ = self.on(.link(link, .proven(try .of(peer), isOtherDead: false)))
        }
        let deadlines = self.core.nextDeadline
        let others = [(2, Self.carol), (3, Self.bob)].map { (TransferID(high: 0, low: $0.0), $0.1) }
        _ = self.on(self.wanted(isInitiator: true))
        for (transfer, peer) in others { _ = self.on(.dataPath(transfer, self.wanted(peer, isInitiator: true, attempt: transfer.low))) }
        let gone = { (effects: [Effect]) in
            effects.filter { if case .dataPath = $0 { true } else { false } }
        }
        #expect(
            gone(self.on(.link(Self.link, .closed(.lost)))) == [
                .dataPath(Self.transfer, .revoke), .dataPath(Self.transfer, .close(attempt: 1)),
                .dataPath(others[1].0, .revoke), .dataPath(others[1].0, .close(attempt: 3)),
            ])
        #expect(self.core.dataPathCount == 1)
        let carol = try #require(links[Self.carol])
        #expect(gone(self.on(.link(carol, .closed(.lost)))).count == 2)
        #expect(self.core.dataPathCount == 0)
        #expect(deadlines != nil && self.core.nextDeadline == nil)
    }
}
