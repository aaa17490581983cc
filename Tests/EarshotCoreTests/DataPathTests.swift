import EarshotWire
import Simulation
import Testing

@testable import EarshotCore

/// The transitions of data paths, one per line: an event, and the resulting effects.
@Suite struct DataPathTests {
    private static let bob = PeerID(subjectPublicKeyInfo: [1])
    private static let carol = PeerID(subjectPublicKeyInfo: [2])
    private static let link = LinkID(number: 7)
    private static let stream = StreamID(high: 0, low: 1)
    private static let transfer = TransferID(stream)

    private var paths = DataPaths()
    private var random: any RandomNumberGenerator & Sendable = SplitMix64(seed: 1)
    /// The outcome of the last event.
    private var outcome: Bool?

    /// Returns the effects of an event on a transfer.
    private mutating func handle(_ event: DataPathEvent, of transfer: TransferID = transfer) -> [Effect] {
        var effects: [Effect] = []
        self.outcome = self.paths.handle(event, of: transfer, using: &self.random, into: &effects)?.stands
        return effects
    }

    private mutating func on(_ event: DataPathEvent) -> [DataPathEffect] { Self.paths(in: self.handle(event)) }

    private static func paths(in effects: [Effect]) -> [DataPathEffect] {
        effects.compactMap { if case .dataPath(Self.transfer, let effect) = $0 { effect } else { nil } }
    }

    @discardableResult
    private mutating func open(_ stream: StreamID = stream, with peer: PeerID = bob, isInitiator: Bool) -> [Effect] {
        var effects: [Effect] = []
        self.paths.open(.stream(stream), with: peer, over: Self.link, isInitiator: isInitiator, using: &self.random, into: &effects)
        return effects
    }

    private mutating func close(_ transfer: TransferID = transfer) -> [Effect] {
        var effects: [Effect] = []
        self.paths.close(transfer, into: &effects)
        return effects
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
        #expect(self.open(isInitiator: true) == [])
        let token = try self.token
        #expect(self.on(.ticket(token, from: Self.bob)) == [.dial(token, Self.bob, over: Self.link, attempt: 1)])
        #expect(self.on(.ticket(token, from: Self.bob)) == [] && self.outcome == nil)
        #expect(self.on(.attached(attempt: 1)) == [.revoke, .use] && self.outcome == true)
        #expect(self.paths.count == 1 && self.paths.waiting(Self.transfer) == nil)
        #expect(Self.paths(in: self.close()) == [.revoke, .close])
        #expect(self.paths.count == 0)
    }

    @Test mutating func whereItCannotDialTheOtherSideDoes() throws {
        self.open(isInitiator: true)
        _ = self.on(.ticket(try self.token, from: Self.bob))
        let effects = self.handle(.dialFailed(attempt: 1))
        let (sent, expected) = try self.ticket(in: effects)
        #expect(sent == expected)
        let ticket = DataTicket(transfer: Self.transfer, token: sent)
        #expect(effects.contains(.send(Self.link, [.dataUnavailable(Self.transfer), .dataTicket(ticket)])))
        #expect(self.outcome == nil)
        #expect(self.on(.unavailable(from: Self.bob)) == [.revoke] && self.outcome == false)
    }

    // MARK: The responder

    @Test mutating func theResponderExpectsBeforeItSaysSo() throws {
        let effects = self.open(isInitiator: false)
        let (sent, expected) = try self.ticket(in: effects)
        #expect(sent == expected)
        let isExpectedFirst = if case .dataPath? = effects.first, case .send? = effects.last { true } else { false }
        #expect(isExpectedFirst)
        #expect(self.on(.attached(attempt: 1)) == [.revoke, .use] && self.outcome == true)
        #expect(self.on(.attached(attempt: 1)) == [.drop] && self.outcome == nil, "one is enough")
    }

    @Test mutating func whereNeitherCanDialBothDoWithout() throws {
        self.open(isInitiator: false)
        let token = try self.token
        #expect(self.on(.unavailable(from: Self.bob)) == [])
        #expect(self.on(.ticket(token, from: Self.bob)) == [.dial(token, Self.bob, over: Self.link, attempt: 1)])
        #expect(
            self.handle(.dialFailed(attempt: 1))
                == [.send(Self.link, [.dataUnavailable(Self.transfer)]), .dataPath(Self.transfer, .revoke)])
        #expect(self.outcome == false)
        #expect(self.on(.dialFailed(attempt: 1)) == [] && self.outcome == nil)
    }

    @Test(arguments: [true, false]) mutating func timeRunsOut(isInitiator: Bool) {
        self.open(isInitiator: isInitiator)
        #expect(self.on(.expired(attempt: 1)) == [.revoke] && self.outcome == false)
        #expect(self.on(.attached(attempt: 1)) == [.drop] && self.outcome == nil)
    }

    // MARK: Several transfers

    /// The end of the first of several dials.
    enum End: CaseIterable {
        case attached, dialFailed, expired, over
    }

    @Test(arguments: End.allCases) mutating func dialsAboveTheLimitWaitForTheirTurn(_ end: End) throws {
        let token = try self.token
        let streams = (1...UInt64(EarshotLimits.dataDials) + 2).map { StreamID(high: 0, low: $0) }
        for stream in streams { self.open(stream, isInitiator: true) }
        func dials(_ effects: [Effect]) -> [StreamID] {
            effects.compactMap {
                guard case .dataPath(let transfer, let effect) = $0 else { return nil }
                let isDialled = effect == .dial(token, Self.bob, over: Self.link, attempt: transfer.low)
                return isDialled ? StreamID(high: 0, low: transfer.low) : nil
            }
        }
        let dialled = streams.flatMap { dials(self.handle(.ticket(token, from: Self.bob), of: TransferID($0))) }
        #expect(dialled == Array(streams.prefix(EarshotLimits.dataDials)), "the others wait for their turn")
        let carols = StreamID(high: 1, low: 0)
        self.open(carols, with: Self.carol, isInitiator: true)
        #expect(
            self.handle(.ticket(token, from: Self.carol), of: TransferID(carols)).contains {
                if case .dataPath(_, .dial) = $0 { true } else { false }
            }, "another peer has its own")
        let next: [Effect] =
            switch end {
            case .attached: self.handle(.attached(attempt: 1))
            case .dialFailed: self.handle(.dialFailed(attempt: 1))
            case .expired: self.handle(.expired(attempt: 1))
            case .over: self.close()
            }
        #expect(dials(next) == [streams[EarshotLimits.dataDials]])
        #expect(self.paths.mostDials == EarshotLimits.dataDials)
    }

    @Test mutating func aPeerThatIsGoneIsDialledForNone() throws {
        let token = try self.token
        let streams = (1...UInt64(EarshotLimits.dataDials) + 1).map { StreamID(high: 0, low: $0) }
        for stream in streams {
            self.open(stream, isInitiator: true)
            _ = self.handle(.ticket(token, from: Self.bob), of: TransferID(stream))
        }
        self.open(StreamID(high: 1, low: 0), with: Self.carol, isInitiator: true)
        let users = self.paths.users(of: Self.bob)
        #expect(users == streams.map { .stream($0) })
        var effects: [Effect] = []
        self.paths.close(users.map(\.transfer), of: Self.bob, into: &effects)
        let closed = streams.flatMap { stream -> [Effect] in
            [.dataPath(TransferID(stream), .revoke), .dataPath(TransferID(stream), .close)]
        }
        #expect(effects == closed)
        #expect(self.paths.count == 1)
    }

    // MARK: Unrelated events

    @Test mutating func othersTicketsAndEarlierAttemptsChangeNothing() throws {
        self.open(isInitiator: true)
        #expect(self.on(.ticket(try self.token, from: Self.carol)) == [])
        #expect(self.on(.unavailable(from: Self.carol)) == [])
        #expect(Self.paths(in: self.open(isInitiator: true)) == [.revoke, .close])
        #expect(self.on(.dialFailed(attempt: 1)) == [])
        #expect(self.on(.expired(attempt: 1)) == [])
        #expect(self.on(.attached(attempt: 1)) == [.drop])
        #expect(self.handle(.attached(attempt: 1), of: TransferID(high: 0, low: 9)) == [.dataPath(TransferID(high: 0, low: 9), .drop)])
        #expect(self.paths.count == 1 && self.paths.waiting(Self.transfer) == 2)
    }

    // MARK: In the core

    @Test(arguments: [true, false]) func dataDialTime(isAttached: Bool) throws {
        var bench = try StreamBench()
        let id = try bench.opened()
        bench.call(.accept(id))
        bench.say(.stream(.reroute(StreamReroute(id: id, offset: 4))))
        let data = TransferID(id)
        let attempt = try #require(bench.bench.core.dataPaths.waiting(data))
        bench.bench.advance(EarshotLimits.dataDialTime - .nanoseconds(1))
        #expect(bench.bench.core.dataPaths.waiting(data) == attempt)
        // After a suspend, the deadline and other events are due at once: the deadline is handled first.
        if isAttached { bench.bench.sleep(.nanoseconds(1)) } else { bench.bench.advance(.nanoseconds(1)) }
        bench.bench.handle(.dataPath(data, .attached(attempt: attempt)))
        #expect(bench.bench.dataPath(of: data).suffix(2) == [.revoke, .drop])
        bench.say(.stream(.rerouted(StreamReroute(id: id, offset: 4))))
        #expect(bench.commands(id).last == .callBack(on: bench.link))
    }

    @Test func aPeerThatIsGoneTakesItsOwnAlong() throws {
        var bench = try StreamBench()
        let id = try bench.opened()
        bench.call(.accept(id))
        bench.say(.stream(.reroute(StreamReroute(id: id, offset: 4))))
        #expect(bench.bench.core.dataPathCount == 1)
        bench.bench.lose(bench.link)
        #expect(bench.bench.dataPath(of: TransferID(id)).suffix(2) == [.revoke, .close])
        #expect(bench.bench.core.dataPathCount == 0)
        #expect(bench.bench.dataPath(of: TransferID(id)).count { $0 == .close } == 1)
    }

    /// Without a session, no data connection is opened.
    @Test func aPeerThatIsAwayIsNotDialled() throws {
        var core = NodeCore.bench()
        core.openData(.stream(Self.stream), with: Self.bob)
        #expect(core.dataPathCount == 0)
    }
}
