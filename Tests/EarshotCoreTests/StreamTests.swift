import EarshotWire
import OrderedCollections
import Testing

@testable import EarshotCore
@testable import EarshotWire

/// The core's decisions about streams, on calls, on the peer's frames, and when a stream depends on something that ends.
@Suite struct StreamTests {
    // MARK: Opening

    @Test func fromItsOpeningToItsEnd() throws {
        var bench = try StreamBench()
        let (id, call) = try bench.open("data")
        #expect(bench.sent() == [.stream(.open(StreamOpen(session: bench.session, id: id, name: try StreamName("data"))))])
        bench.say(.stream(.accept(StreamAccept(id: id, limit: 10))))
        #expect(try bench.row(id).state == .open)
        bench.say(.stream(.accept(StreamAccept(id: id, limit: 20))))
        bench.say(.stream(.done(id)))
        let permits = [10, 20].map { StreamCommand.permit(upTo: $0, on: bench.link) }
        #expect(bench.commands(id) == [.send(to: bench.peer, for: call)] + permits + [.end(nil)])
        let row = try #require(bench.bench.answers[call]?.stream)
        #expect(row.state == .closed && row.error == nil && row.closed != nil)
        #expect(bench.sent() == [])
    }

    @Test func namesAndPeersAreChecked() throws {
        var bench = try StreamBench()
        let stranger = peerID(2)
        let link = try bench.bench.prove(stranger, name: "stranger")
        _ = link
        for (peer, name, code) in [
            (bench.peer.description, "", EarshotError.Code.invalidParameter),
            (bench.peer.description, String(repeating: "x", count: 256), .invalidParameter),
            (bench.peer.description, "a\u{1B}b", .invalidParameter), (stranger.description, "x", .notConnected),
            ("nobody", "x", .unknownPeer), (peerID(3).description, "x", .unknownPeer),
        ] {
            #expect(bench.call(.open(to: peer, name: name))?.error == code)
        }
        #expect(bench.call(.acceptNext(name: "", from: nil, timeout: nil))?.error == .invalidParameter)
        #expect(bench.call(.acceptNext(name: nil, from: bench.bench.core.id.description, timeout: nil))?.error == .invalidParameter)
        #expect(bench.rows.isEmpty)
        #expect(try StreamName(String(repeating: "x", count: 255)).description.utf8.count == 255)
    }

    /// A trusted peer is invited for the stream, which waits for the session.
    @Test func theFirstToATrustedPeerInvitesIt() throws {
        var bench = CoreBench()
        let bob = peerID(1)
        bench.call(.setTrust(.trusted, bob.description, until: nil))
        bench.call(.stream(.open(to: bob.description, name: "x")))
        let call = bench.lastCall
        let invitation = try #require(bench.pending.first)
        let link = try bench.prove(bob)
        #expect(bench.sent(on: link).contains { if case .invite = $0 { true } else { false } })
        bench.frame(.inviteAnswer(InviteAnswer(id: invitation, decision: .declined)), on: link)
        #expect(bench.answers[call]?.error == .declined)
    }

    /// The stream waits only for a session, so no other event ends it when its peer is blocked.
    @Test(arguments: [Trust.blocked, .unknown]) func theTrustInItsPeerEndsFirst(_ trust: Trust) throws {
        var bench = CoreBench()
        let bob = peerID(1)
        bench.call(.setTrust(.trusted, bob.description, until: nil))
        bench.call(.stream(.open(to: bob.description, name: "x")))
        let call = bench.lastCall
        bench.call(.setTrust(trust, bob.description, until: nil))
        #expect(bench.answers[call]?.error == .notConnected)
        #expect(bench.core.allStreams.map(\.state) == [.closed])
    }

    // MARK: Accepting

    @Test func firstComeFirstServed() throws {
        var bench = try StreamBench()
        var calls: [CallID] = []
        for name in ["x", "y", nil] {
            #expect(bench.call(.acceptNext(name: name, from: nil, timeout: nil)) == nil)
            calls.append(bench.bench.lastCall)
        }
        let first = try bench.opened()
        #expect(bench.bench.answers[calls[0]]?.stream?.id == first)
        let second = try bench.opened()
        #expect(bench.bench.answers[calls[2]]?.stream?.id == second && bench.bench.answers[calls[1]] == nil)
        #expect(bench.limits().count == 2)
        #expect(bench.bench.holds.isEmpty, "nothing waits")
    }

    @Test func whatWaitsLongestIsAccepted() throws {
        var bench = try StreamBench()
        let ids = try ["a", "b", "a"].map { try bench.opened(named: $0) }
        #expect(bench.call(.acceptNext(name: "b", from: nil, timeout: nil))?.stream?.id == ids[1])
        #expect(bench.call(.acceptNext(name: nil, from: peerID(9).description, timeout: nil)) == nil, "another peer's")
        #expect(bench.call(.acceptNext(name: nil, from: bench.peer.description, timeout: nil))?.stream?.id == ids[0])
        #expect(bench.call(.acceptNext(name: nil, from: nil, timeout: nil))?.stream?.id == ids[2])
    }

    @Test func whatCannotBeAccepted() throws {
        var bench = try StreamBench()
        let (own, theirs) = (try bench.open().id, try bench.opened())
        #expect(bench.call(.accept(own))?.error == .conflict)
        #expect(bench.call(.accept(bench.freshID()))?.error == .notFound)
        #expect(bench.call(.finish(theirs))?.error == .conflict, "it is not accepted")
        #expect(bench.call(.accept(theirs))?.stream?.state == .open)
        #expect(bench.call(.accept(theirs))?.error == .conflict)
        #expect(bench.call(.finish(own))?.error == .conflict)
    }

    /// A stream that waits for a user is charged to its sender for the time of the wait.
    @Test(arguments: ["accepted", "aborted", "expired", "lost"]) func aWaitingStreamIsChargedToItsSender(_ how: String) throws {
        var bench = try StreamBench()
        let id = try bench.opened()
        #expect(bench.bench.holds.values.elementsEqual([EarshotLimits.waitCharge]))
        switch how {
        case "accepted": bench.call(.accept(id))
        case "aborted": bench.abort(id)
        case "expired": bench.bench.advance(EarshotLimits.streamWaitTime)
        default: bench.bench.lose(bench.link)
        }
        #expect(bench.bench.holds.isEmpty)
    }

    // MARK: The peer's frames

    @Test func noSuchSession() throws {
        var bench = try StreamBench()
        try bench.opened(in: SessionID(high: 1, low: 1))
        #expect(bench.refusals() == [.notConnected])
        #expect(bench.rows.isEmpty)
    }

    @Test func anotherPeersStreams() throws {
        var bench = try StreamBench()
        let (own, theirs) = (try bench.open().id, try bench.opened())
        let carol = try bench.bench.prove(peerID(2), name: "carol")
        _ = try bench.bench.join(on: carol)
        let refusal = Refusal(code: .cancelled)
        let frames: [Frame] = [
            .stream(.accept(StreamAccept(id: own, limit: 1))), .stream(.done(own)),
            .stream(.refuse(StreamRefuse(id: own, refusal: refusal))),
            .stream(.abort(StreamRefuse(id: theirs, refusal: refusal))), .stream(.reroute(StreamReroute(id: theirs, offset: 0))),
            .stream(.rerouted(StreamReroute(id: theirs, offset: 0))),
        ]
        for frame in frames { bench.bench.frame(frame, on: carol) }
        #expect(bench.rows.map(\.state) == [.opening, .opening])
        #expect(!bench.bench.core.offersInVain(peerID(2), at: bench.bench.now.monotonic))
    }

    @Test func anIDThatIsTaken() throws {
        var bench = try StreamBench()
        let own = try bench.open().id
        try bench.opened(own)
        #expect(bench.refusals() == [.conflict])
        #expect(try bench.row(own).direction == .outgoing)
    }

    // MARK: Ends

    @Test func byAThirdParty() throws {
        var bench = try StreamBench()
        let id = try bench.opened()
        bench.call(.accept(id))
        #expect(bench.call(.remove(id))?.stream?.state == .closed)
        #expect(bench.sent().contains { if case .stream(.abort(let abort)) = $0 { abort.id == id } else { false } })
        #expect(bench.commands(id).last == .end(EarshotError(.cancelled, "aborted here")))
        #expect(bench.call(.finish(id))?.error == .cancelled)
        #expect(bench.call(.remove(id)) == .done)
        #expect(bench.commands(id).last == .forget)
        #expect(bench.call(.remove(id))?.error == .notFound)
    }

    @Test func aReaderThatHasTakenEverything() throws {
        var bench = try StreamBench()
        let id = try bench.opened()
        bench.call(.accept(id))
        _ = bench.sent()
        #expect(bench.call(.finish(id)) == .done)
        #expect(bench.sent() == [.stream(.done(id))])
        #expect(bench.call(.finish(id)) == .done)
        #expect(bench.sent() == [])
    }

    @Test(arguments: [StreamReport.abandoned, .broken(EarshotError(.cancelled, "cut off"))])
    func aWriterThatGoes(_ report: StreamReport) throws {
        var bench = try StreamBench()
        let (id, call) = try bench.open()
        bench.say(.stream(.accept(StreamAccept(id: id, limit: 10))))
        bench.report(id, report)
        #expect(bench.bench.answers[call]?.error == .cancelled)
        bench.report(id, report)
        bench.report(id, .isLarge)
        let aborts = bench.sent().count { if case .stream(.abort) = $0 { true } else { false } }
        #expect(aborts == 1)
    }

    /// A stream that is not accepted yet survives a lost connection: it is opened again on the next one.
    @Test func aLostConnection() throws {
        var bench = try StreamBench()
        let (opening, open) = (try bench.open().id, try bench.open())
        let theirs = try [bench.opened(), bench.opened()]
        bench.say(.stream(.accept(StreamAccept(id: open.id, limit: 10))))
        bench.call(.accept(theirs[0]))
        bench.bench.lose(bench.link)
        #expect(bench.bench.answers[open.call]?.error == .unavailable)
        #expect(try theirs.map { try bench.row($0).error } == [.unavailable, .unavailable])
        #expect(try bench.row(opening).state == .opening)
        try bench.connect()
        let frame = Frame.stream(.open(StreamOpen(session: bench.session, id: opening, name: try StreamName("x"))))
        #expect(bench.sent().count { $0 == frame } == 1)
        // The peer's streams come again under their ids, also the accepted one.
        for id in theirs { try bench.opened(id) }
        #expect(bench.refusals() == [])
        #expect(try theirs.map { try bench.row($0).state } == [.opening, .opening])
        #expect(bench.commands(theirs[0]).last == .forget && bench.commands(theirs[1]) == [])
    }

    /// The error tells whether the peer was unreachable, or nobody there accepted the stream.
    @Test(arguments: [true, false]) func whyNobodyAcceptedIt(_ isThere: Bool) throws {
        var bench = try StreamBench()
        let call = try bench.open().call
        if !isThere { bench.bench.lose(bench.link) }
        bench.bench.advance(EarshotLimits.streamOpenTime)
        guard case .failure(let error)? = bench.bench.answers[call] else { throw EarshotError(.notFound, "no answer") }
        #expect(error.code == .timedOut && error.message.contains(isThere ? "nobody at" : "could not be reached"))
    }

    @Test(arguments: [true, false]) func theEndOfTheSession(_ here: Bool) throws {
        var bench = try StreamBench()
        let (own, theirs) = (try bench.open(), try bench.opened())
        if here { bench.bench.call(.leave(bench.session)) } else { bench.say(.sessionEnd(bench.session)) }
        #expect(bench.bench.answers[own.call]?.error == .cancelled)
        #expect(try [own.id, theirs].map { try bench.row($0).error } == [.cancelled, .cancelled])
        #expect(bench.bench.core.figures.deadlines == 1, "of the connection alone")
    }

    @Test func theDaemonIsAboutToStop() throws {
        var bench = try StreamBench()
        let (own, theirs) = (try bench.open(), try bench.opened())
        bench.call(.acceptNext(name: "other", from: nil, timeout: .seconds(5)))
        let waiting = bench.bench.lastCall
        bench.bench.handle(.streamsOver)
        for call in [own.call, waiting] { #expect(bench.bench.answers[call]?.error == .unavailable) }
        #expect(try bench.row(theirs).state == .closed)
        _ = bench.sent()
        #expect(bench.call(.open(to: bench.peer.description, name: "x"))?.error == .unavailable)
        #expect(bench.call(.acceptNext(name: nil, from: nil, timeout: nil))?.error == .unavailable)
        try bench.opened()
        #expect(bench.refusals() == [.unavailable])
    }

    /// A renewed connection would lose the stream.
    @Test func aNewNameLeavesStreamsAlone() throws {
        var bench = try StreamBench()
        #expect(bench.bench.core.renewableLinks == [bench.link])
        let id = try bench.opened()
        #expect(bench.bench.core.renewableLinks == [])
        bench.abort(id)
        #expect(bench.bench.core.renewableLinks == [bench.link])
    }

    // MARK: Routes

    /// A peer whose hello does not announce support is not asked.
    @Test(arguments: [true, false]) func whoDoesNotKnowItIsNotAsked(_ knows: Bool) throws {
        var bench = try StreamBench(knows: knows)
        let id = try bench.open().id
        bench.report(id, .isLarge)
        #expect(!bench.commands(id).contains(.askForData), "nobody has accepted it")
        bench.say(.stream(.accept(StreamAccept(id: id, limit: 1 << 20))))
        bench.report(id, .isLarge)
        #expect(bench.commands(id).contains(.askForData) == knows)
    }

    @Test(arguments: [true, false]) func aStreamThatIsReceivedOverADataConnection(_ stands: Bool) throws {
        var bench = try StreamBench()
        let id = try bench.opened()
        bench.call(.accept(id))
        bench.say(.stream(.reroute(StreamReroute(id: id, offset: 4))))
        let data = TransferID(id)
        let before = bench.commands(id)
        #expect(bench.bench.core.dataPaths.waiting(data) != nil)
        bench.bench.dataOpened(data, stands)
        #expect(bench.commands(id) == before, "the sender still uses the control connection")
        bench.say(.stream(.rerouted(StreamReroute(id: id, offset: 4))))
        if stands {
            #expect(bench.commands(id).last == .readData)
            bench.report(id, .dataEnded(nil))
        }
        #expect(bench.commands(id).last == .callBack(on: bench.link))
        #expect(bench.bench.dataPath(of: data).last == .close && bench.bench.core.dataPathCount == 0)
        // A fault of the peer ends the stream.
        bench.report(id, .dataEnded(EarshotError(.protocolViolation, "too much")))
        #expect(try bench.row(id).error == .protocolViolation)
    }

    @Test func aStreamThatIsCalledBackLeavesItsDataConnection() throws {
        var bench = try StreamBench()
        let id = try bench.open().id
        bench.say(.stream(.accept(StreamAccept(id: id, limit: 1 << 20))))
        bench.report(id, .isLarge)
        bench.report(id, .dataAsked)
        bench.bench.dataOpened(TransferID(id), true)
        bench.say(.stream(.reroute(StreamReroute(id: id, offset: 7))))
        #expect(bench.commands(id).suffix(2) == [.useData, .goBack(to: 7)])
        #expect(bench.bench.dataPath(of: TransferID(id)).last == .close)
        bench.report(id, .isLarge)
        #expect(bench.commands(id).last == .goBack(to: 7), "it asks once")
    }
}
