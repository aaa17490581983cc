import EarshotWire
import Testing

@testable import EarshotCore
@testable import EarshotWire

/// The limits of streams, each tested at its boundary.
@Suite struct StreamLimitTests {
    @Test func outgoingStreamsAboveTheLimitAreRefused() throws {
        var bench = try StreamBench()
        let opened = try (0..<EarshotLimits.outgoingStreams).map { try bench.open("\($0)") }
        #expect(Set(opened.map(\.id)).count == EarshotLimits.outgoingStreams)
        let open = StreamRequest.open(to: bench.peer.description, name: "x")
        #expect(bench.call(open)?.error == .busy)
        // A stream that ends makes room for another.
        bench.say(.stream(.refuse(StreamRefuse(id: opened[0].id, refusal: Refusal(code: .declined, explanation: "not now")))))
        #expect(bench.bench.answers[opened[0].call]?.error == .declined)
        _ = try bench.open()
        #expect(bench.call(open)?.error == .busy)
    }

    /// Checks that nothing happens just before the limit, and that both sides are told at the limit.
    private func expectTimeOut(_ id: StreamID, after limit: Duration, _ bench: inout StreamBench) throws {
        bench.bench.advance(limit - .nanoseconds(1))
        #expect(try bench.row(id).state == .opening)
        #expect(bench.sent().allSatisfy { if case .stream(.abort) = $0 { false } else { true } })
        bench.bench.advance(.nanoseconds(1))
        let aborts = bench.sent().compactMap { if case .stream(.abort(let abort)) = $0 { abort } else { nil } }
        #expect(aborts.map(\.id) == [id] && aborts.map(\.refusal.code) == [.timedOut])
        #expect(try bench.row(id).error == .timedOut)
    }

    @Test func streamOpenTime() throws {
        var bench = try StreamBench()
        let (id, call) = try bench.open()
        try self.expectTimeOut(id, after: EarshotLimits.streamOpenTime, &bench)
        #expect(bench.bench.answers[call]?.error == .timedOut)
    }

    @Test func streamWaitTime() throws {
        var bench = try StreamBench()
        let id = try bench.opened()
        try self.expectTimeOut(id, after: EarshotLimits.streamWaitTime, &bench)
        #expect(EarshotLimits.streamWaitTime > EarshotLimits.streamOpenTime, "the sender's word comes first")
    }

    /// A stream that is accepted in time is not ended by that limit.
    @Test func acceptedInTime() throws {
        var bench = try StreamBench()
        let (own, theirs) = (try bench.open().id, try bench.opened())
        bench.say(.stream(.accept(StreamAccept(id: own, limit: 10))))
        bench.call(.accept(theirs))
        #expect(bench.bench.core.figures.deadlines == 1, "of the connection alone")
        bench.bench.advance(EarshotLimits.streamWaitTime + .seconds(1))
        #expect(bench.rows.map(\.state) == [.open, .open])
    }

    @Test func acceptorsAboveTheLimitAreRefused() throws {
        var bench = CoreBench()
        let next = Command.stream(.acceptNext(name: nil, from: nil, timeout: nil))
        var calls: [CallID] = []
        for _ in 0..<EarshotLimits.streamAcceptors {
            #expect(bench.call(next) == nil)
            calls.append(bench.lastCall)
        }
        #expect(bench.call(next)?.error == .busy)
        // A caller that disconnects makes room for another.
        bench.handle(.callerGone(calls[0]))
        #expect(bench.answers[calls[0]]?.error == .cancelled)
        #expect(bench.call(next) == nil)
        #expect(bench.call(next)?.error == .busy)
        bench.handle(.callerGone(calls[0]))
        #expect(bench.call(next)?.error == .busy, "it has gone before")
    }

    /// A caller waits for exactly its timeout.
    @Test func anAcceptorWaitsForExactlyItsTimeout() throws {
        var bench = CoreBench()
        let next = { (time: Duration) in Command.stream(.acceptNext(name: nil, from: nil, timeout: time)) }
        #expect(bench.call(next(.zero))?.error == .timedOut)
        #expect(bench.call(next(.seconds(5))) == nil)
        bench.advance(.seconds(5) - .nanoseconds(1))
        #expect(bench.answers[bench.lastCall] == nil)
        bench.advance(.nanoseconds(1))
        #expect(bench.answers[bench.lastCall]?.error == .timedOut)
        #expect(bench.core.streams.acceptors.isEmpty)
    }

    /// The streams of one peer share a total window. A single stream gets at most its own maximum, and each gets its minimum.
    @Test func streamsOfOnePeerShareAWindow() throws {
        var bench = try StreamBench()
        let (whole, most, least) = (EarshotLimits.streamWindows, EarshotLimits.streamWindow, EarshotLimits.streamWindowMinimum)
        var limits: [UInt64] = []
        for _ in 0..<64 {
            let id = try bench.opened()
            bench.call(.accept(id))
            limits += bench.limits()
            #expect(try bench.commands(id) == [.receive(from: bench.peer, on: bench.link, window: #require(limits.last))])
        }
        let full = Int(whole / most)
        #expect(limits.count == 64 && limits.prefix(full).allSatisfy { $0 == most })
        #expect(limits[full] == whole / UInt64(full + 1) && limits[full] < most)
        #expect(limits[62] == whole / 63 && limits[62] > least)
        #expect(limits[63] == least && least == whole / 64, "as many as the protocol permits have the least")
    }

    @Test func waitingStreamsAboveTheLimitAreRefused() throws {
        var bench = try StreamBench()
        let waiting = try (0..<EarshotLimits.waitingStreams).map { _ in try bench.opened() }
        for _ in 0..<1000 { try bench.opened() }
        #expect(bench.refusals() == Array(repeating: .busy, count: 1000))
        #expect(bench.rows.map(\.id) == waiting)
        bench.call(.accept(waiting[3]))
        try bench.opened()
        #expect(bench.refusals() == [], "one that is accepted makes room for one")
    }

    @Test func closedStreamsAboveTheLimitAreForgotten() throws {
        var bench = try StreamBench()
        let kept = try bench.open().id
        for _ in 0..<EarshotLimits.vainOffers - 1 { bench.abort(try bench.opened()) }
        #expect(bench.rows.count == EarshotLimits.closedStreams + 1 && bench.rows.first?.id == kept)
        let accepted = try bench.opened()
        bench.call(.accept(accepted))
        bench.call(.finish(accepted))
        for _ in 0..<EarshotLimits.closedStreams {
            bench.call(.open(to: bench.peer.description, name: "x"))
            bench.call(.remove(try #require(bench.rows.last?.id)))
        }
        #expect(bench.commands(accepted).last == .forget, "with its row what has moved it goes")
    }

    /// Failed offers cost rows and events here, and next to nothing at the sender.
    @Test func failedOffersAboveTheLimitAreRefused() throws {
        var bench = try StreamBench()
        for _ in 0..<EarshotLimits.vainOffers { bench.abort(try bench.opened()) }
        #expect(bench.refusals() == [])
        try bench.opened()
        #expect(bench.refusals() == [.busy])
        bench.bench.advance(EarshotLimits.vainOfferTime)
        bench.abort(try bench.opened())
        try bench.opened()
        #expect(bench.refusals() == [.busy])
        // Failed offers of resources count too.
        bench.bench.advance(EarshotLimits.vainOfferTime)
        let file = ResourceID(high: 1, low: 1)
        bench.say(.resource(.offer(ResourceOffer(session: bench.session, id: file, kind: .file, size: 1, name: "x"))))
        bench.say(.resource(.cancel(ResourceRefuse(id: file, refusal: Refusal(code: .cancelled)))))
        try bench.opened()
        #expect(bench.refusals() == [.busy])
        bench.bench.advance(EarshotLimits.vainOfferTime)
        #expect(!bench.bench.core.offersInVain(bench.peer, at: bench.bench.now.monotonic))
    }

    /// A limited number of streams request data connections at a time. A stream that has one, needs none, or ends lets the next one
    /// request.
    @Test(arguments: ["stands", "not", "unneeded", "ends"]) func reroutesAboveTheLimitWaitForTheirTurn(_ how: String) throws {
        var bench = try StreamBench()
        let ids = try (0...EarshotLimits.streamReroutes).map { try bench.open("\($0)").id }
        for id in ids {
            bench.say(.stream(.accept(StreamAccept(id: id, limit: 1 << 20))))
            bench.report(id, .isLarge)
            bench.report(id, .isLarge)
        }
        let asked = { (bench: StreamBench) in ids.filter { bench.commands($0).contains(.askForData) } }
        #expect(asked(bench) == ids.dropLast())
        switch how {
        case "stands", "not":
            bench.report(ids[0], .dataAsked)
            bench.bench.dataOpened(TransferID(ids[0]), how == "stands")
        case "unneeded": bench.report(ids[0], .dataUnneeded)
        default: bench.report(ids[0], .abandoned)
        }
        #expect(asked(bench) == ids)
        #expect(ids.allSatisfy { id in bench.commands(id).count { $0 == .askForData } == 1 })
        switch how {
        case "stands": #expect(bench.commands(ids[0]).last == .useData)
        case "ends": #expect(bench.commands(ids[0]).last == .end(EarshotError(.cancelled, "its writer has gone")))
        default:
            #expect(bench.commands(ids[0]).last == .askForData)
            #expect(bench.bench.core.dataPathCount == 0)
        }
    }
}
