import EarshotWire
import OrderedCollections
import Testing

@testable import EarshotCore
@testable import EarshotWire

/// What is decided about resources: by callers, by the peer, by the disk, and by what else ends.
@Suite struct TransferTests {
    // MARK: Receiving

    @Test func fromItsOfferToItsEnd() throws {
        var bench = try TransferBench()
        let id = bench.offered()
        #expect(bench.sent().isEmpty, "not before there is room")
        bench.report(id, .held(nil))
        bench.report(id, .began)
        #expect(bench.sent() == [.resourceAccept(ResourceAccept(id: id, offset: 0, limit: 10))])
        bench.report(id, .written(to: 10))
        bench.bench.isDiskHeld = true
        bench.say(.resourceEnd(ResourceEnd(id: id, algorithm: .xxh3, digest: [1])))
        bench.report(id, .settled("xxh3:01"))
        #expect(bench.sent().isEmpty && bench.finished.isEmpty, "its row is not on disk")
        bench.bench.releaseDisk()
        #expect(bench.sent() == [.resourceDone(id)])
        let row = try bench.row(id)
        #expect(row.state == .completed && row.inSpool && row.digest == "xxh3:01" && bench.finished == [row])
        #expect(bench.orders(id).last == .stop(isKept: true))
        bench.report(id, .stopped)
        #expect(bench.bench.holds.isEmpty)
        // Offered again, as its sender has not heard of it.
        bench.lose()
        try bench.connect()
        _ = bench.sent()
        _ = bench.offered(id: id)
        #expect(bench.sent() == [.resourceDone(id)])
    }

    /// Its sender hears of it once it is where it belongs, and that is on disk.
    @Test func putInPlace() throws {
        var bench = try TransferBench { $0.putsInPlace = true }
        let id = bench.settled()
        #expect(bench.orders(id).contains { if case .place = $0 { true } else { false } })
        #expect(bench.bench.call(.resource(.remove(id)))?.error == .conflict, "it is too late")
        _ = bench.sent()
        // Something that its sender says behind the end.
        bench.report(id, .failed(TransferFailure(EarshotError(.notFound, "no"), told: Refusal(code: .unavailable))))
        bench.report(id, .placed(.success("/there/x")))
        #expect(bench.sent().isEmpty, "its copy in the spool is not gone")
        bench.report(id, .contentRemoved(for: nil, nil))
        #expect(bench.sent() == [.resourceDone(id)])
        let row = try bench.row(id)
        #expect(row.path == "/there/x" && !row.inSpool && row.state == .completed && row.error == nil)
    }

    /// Its row is written behind the removal of the old one: it is listed, as the disk has it, and can be removed like that one.
    @Test func offeredAndTakenBackWhileItsRowIsBeingRemoved() throws {
        var bench = try TransferBench { $0.policy.acceptResources = .ask }
        let refusal = Refusal(code: .timedOut, explanation: "no")
        let id = bench.offered()
        bench.say(.resourceCancel(ResourceRefuse(id: id, refusal: refusal)))
        #expect(try bench.row(id).state == .failed)
        bench.bench.isDiskHeld = true
        #expect(bench.bench.call(.resource(.remove(id))) == nil)
        #expect(bench.offered(id: id) == id)
        bench.say(.resourceCancel(ResourceRefuse(id: id, refusal: refusal)))
        bench.bench.releaseDisk()
        #expect(try bench.row(id).state == .failed)
        #expect(bench.bench.call(.resource(.remove(id))) == .done)
        #expect(throws: EarshotError.self) { try bench.row(id) }
    }

    /// The disk was full when it was accepted, and not any more when it moved.
    @Test func oneThatMovedWasAccepted() throws {
        var bench = try TransferBench { $0.policy.acceptResources = .ask }
        let id = bench.freshID()
        let row = Resource(
            id: id, direction: .incoming, peerID: bench.peer, peerName: "x", name: "x", kind: .file, size: 10, state: .transferring,
            created: bench.bench.now.wall)
        let stored = StoredTransfer(id: id, source: .none, isTaken: false, expiry: row.created + .seconds(60))
        bench.bench.handle(.transfers([LoadedTransfer(row: row, stored: stored)], []))
        #expect(try bench.row(id).state == .paused)
        #expect(bench.offered(id: id) == id)
        #expect(bench.orders(id).contains { if case .resume = $0 { true } else { false } })
    }

    /// Where it cannot be put there it stays in the spool and says why; but a name that was taken meanwhile is its sender's affair.
    @Test(arguments: [EarshotError.Code.storage, .conflict]) func notPutInPlace(_ code: EarshotError.Code) throws {
        var bench = try TransferBench { $0.putsInPlace = true }
        let id = bench.settled()
        _ = bench.sent()
        bench.report(id, .placed(.failure(EarshotError(code, "no"))))
        if code == .conflict { bench.report(id, .contentRemoved(for: nil, nil)) }
        let row = try bench.row(id)
        #expect(row.error == code)
        #expect(row.state == (code == .conflict ? .failed : .completed) && row.inSpool == (code == .storage))
        #expect(bench.sent().count == 1)
    }

    /// The disk does not take that it failed: it is here, as the disk says.
    @Test func notPutInPlaceAndNotRecorded() throws {
        var bench = try TransferBench { $0.putsInPlace = true }
        let id = bench.settled()
        _ = bench.sent()
        bench.bench.diskError = EarshotError(.storage, "full")
        bench.report(id, .placed(.failure(EarshotError(.conflict, "no"))))
        let row = try bench.row(id)
        #expect(row.state == .completed && row.inSpool && row.error == .conflict)
        #expect(!bench.orders(id).contains(.removeContent(for: nil)))
        #expect(bench.sent() == [.resourceDone(id)])
    }

    /// The disk does not take the row: then it has not arrived.
    @Test func theRowCannotBeWritten() throws {
        var bench = try TransferBench()
        bench.bench.diskError = EarshotError(.storage, "no")
        let id = bench.settled()
        #expect(bench.orders(id).contains(.removeContent(for: nil)))
        bench.report(id, .contentRemoved(for: nil, nil))
        #expect(try bench.row(id).state == .failed)
        #expect(bench.refusals() == [.unavailable])
    }

    /// All has arrived: whatever becomes of the connection, it goes on to its end.
    @Test func aLostConnectionLeavesWhatHasArrived() throws {
        var bench = try TransferBench()
        let moving = bench.offered()
        let settling = bench.offered()
        for id in [moving, settling] {
            bench.report(id, .held(nil))
            bench.report(id, .began)
            bench.report(id, .written(to: 10))
        }
        bench.say(.resourceEnd(ResourceEnd(id: settling, algorithm: .xxh3, digest: [1])))
        bench.lose()
        #expect(try bench.row(moving).state == .paused)
        #expect(bench.orders(moving).last == .stop(isKept: true))
        bench.report(settling, .settled("xxh3:01"))
        #expect(try bench.row(settling).state == .completed)
    }

    /// What came again before the last mover had stopped is dealt with then.
    @Test func offeredAgainTooSoon() throws {
        var bench = try TransferBench()
        let id = bench.offered()
        bench.report(id, .held(nil))
        bench.report(id, .began)
        bench.lose()
        try bench.connect()
        _ = bench.offered(id: id)
        #expect(bench.orders(id).last == .stop(isKept: true))
        bench.report(id, .stopped)
        #expect(bench.orders(id).last == .resume(try bench.row(id), QuotaShare(of: bench.peer, isTrusted: false)))
    }

    // MARK: A person's answer

    @Test func aPersonAccepts() throws {
        var bench = try TransferBench { $0.policy.acceptResources = .ask }
        let id = bench.offered()
        #expect(bench.orders(id).contains { if case .checkRoom = $0 { true } else { false } })
        #expect(bench.bench.holds.count == 1, "its sender is charged while it waits")
        #expect(bench.bench.call(.resource(.respond(id, .accept))) == nil, "not before there is room")
        let call = bench.bench.lastCall
        bench.report(id, .held(nil))
        bench.report(id, .began)
        #expect(bench.bench.answers[call]?.resource?.state == .transferring)
        #expect(bench.bench.call(.resource(.respond(id, .accept)))?.error == .conflict)
    }

    @Test func thereIsNoRoom() throws {
        var bench = try TransferBench { $0.policy.acceptResources = .ask }
        let failure = TransferFailure(EarshotError(.noSpace, "/secret/place is full"), told: Refusal(code: .noSpace, explanation: "full"))
        // Before a person has looked.
        let first = bench.offered()
        bench.report(first, .room(failure))
        #expect(try bench.row(first).error == .noSpace)
        #expect(bench.sent().last == .resourceRefuse(ResourceRefuse(id: first, refusal: failure.told)), "where files are is not told")
        // And after.
        let second = bench.offered()
        bench.bench.call(.resource(.respond(second, .accept)))
        let call = bench.bench.lastCall
        bench.report(second, .held(nil))
        bench.report(second, .failed(failure))
        #expect(bench.bench.answers[call]?.error == .noSpace)
        #expect(bench.orders(second).last == .stop(isKept: false))
        bench.report(second, .stopped)
        #expect(bench.bench.holds.isEmpty)
    }

    /// On another connection its sender does not know what the answer is about until it has offered it again.
    @Test func acceptedBetweenTwoConnections() throws {
        var bench = try TransferBench { $0.policy.acceptResources = .ask }
        let id = bench.offered()
        bench.lose()
        try bench.connect()
        #expect(bench.bench.call(.resource(.respond(id, .accept)))?.resource?.state == .paused)
        #expect(!bench.orders(id).contains { if case .resume = $0 { true } else { false } })
        _ = bench.offered(id: id)
        #expect(bench.orders(id).contains { if case .resume = $0 { true } else { false } })
    }

    // MARK: Sending

    @Test func sentToItsEnd() throws {
        var bench = try TransferBench()
        let id = bench.send()
        #expect(bench.sent().count == 1)
        bench.say(.resourceAccept(ResourceAccept(id: id, offset: 0, limit: 10)))
        #expect(bench.orders(id).last == .send(from: 0, upTo: 10, on: bench.link))
        bench.report(id, .sent(to: 10))
        #expect(bench.orders(id).last == .digest(.xxh3))
        bench.report(id, .digested([0x0A]))
        #expect(bench.sent() == [.resourceEnd(ResourceEnd(id: id, algorithm: .xxh3, digest: [0x0A]))])
        bench.say(.resourceDone(id))
        let row = try bench.row(id)
        #expect(row.state == .completed && row.digest == "xxh3:0a" && bench.finished == [row])
    }

    /// The receiver's word was lost with the connection, and the source is another one since: what has arrived is what it was.
    @Test func anotherSourceSinceItArrived() throws {
        var bench = try TransferBench()
        let id = bench.send()
        bench.say(.resourceAccept(ResourceAccept(id: id, offset: 0, limit: 10)))
        bench.report(id, .sent(to: 10))
        bench.report(id, .digested([1]))
        bench.lose()
        bench.report(id, .stopped)
        try bench.connect()
        _ = bench.sent()
        bench.report(id, .opened(OpenedSource(size: 5, stamp: "2")))
        #expect(bench.sent() == [.resourceOffer(ResourceOffer(session: bench.session, id: id, kind: .file, size: 5, name: "x"))])
        bench.say(.resourceDone(id))
        #expect(try bench.row(id).size == 10 && bench.row(id).state == .completed)
    }

    /// The receiver takes it as it is now, from its beginning.
    @Test func anotherSourceBeforeItArrived() throws {
        var bench = try TransferBench()
        let id = bench.send()
        bench.lose()
        bench.report(id, .stopped)
        try bench.connect()
        bench.report(id, .opened(OpenedSource(size: 5, stamp: "2")))
        #expect(try bench.row(id).size == 10)
        bench.say(.resourceHave(ResourceHave(id: id, offset: 3, digest: [1])))
        #expect(bench.sent().last == .resourceFrom(ResourceFrom(id: id, offset: 0)))
        bench.say(.resourceAccept(ResourceAccept(id: id, offset: 0, limit: 5)))
        #expect(try bench.row(id).size == 5)
        #expect(bench.orders(id).last == .send(from: 0, upTo: 5, on: bench.link))
    }

    /// Nothing of another source is sent before the row tells of it: a restart would take what has arrived for what the source was before.
    @Test(arguments: [nil, EarshotError(.storage, "no")]) func anotherSourceIsOnDiskFirst(error: EarshotError?) throws {
        var bench = try TransferBench()
        let id = bench.send()
        bench.lose()
        bench.report(id, .stopped)
        try bench.connect()
        bench.report(id, .opened(OpenedSource(size: 5, stamp: "2")))
        let before = bench.orders(id)
        bench.bench.isDiskHeld = true
        for limit in [3, 5] as [UInt64] { bench.say(.resourceAccept(ResourceAccept(id: id, offset: 0, limit: limit))) }
        #expect(try bench.orders(id) == before && bench.row(id).size == 10)
        bench.bench.diskError = error
        bench.bench.releaseDisk()
        guard error == nil else {
            #expect(try bench.row(id).error == .storage && bench.row(id).size == 10)
            return #expect(bench.orders(id).contains(.stop(isKept: false)))
        }
        #expect(try bench.orders(id) == before + [.send(from: 0, upTo: 5, on: bench.link)] && bench.row(id).size == 5)
        let sizes = bench.bench.transferOperations.compactMap { if case .putResource(let row) = $0 { row.size } else { nil } }
        #expect(sizes == [5], "once")
    }

    /// The connection was lost before that was on disk: it begins anew with the next one, by what its source is then.
    @Test func anotherSourceIsOnDiskTooLate() throws {
        var bench = try TransferBench()
        let id = bench.send()
        for _ in 0..<2 {
            bench.lose()
            bench.report(id, .stopped)
            try bench.connect()
            bench.report(id, .opened(OpenedSource(size: 5, stamp: "2")))
            bench.bench.isDiskHeld = true
            bench.say(.resourceAccept(ResourceAccept(id: id, offset: 0, limit: 5)))
        }
        let before = bench.orders(id)
        bench.bench.releaseDisk()
        #expect(bench.orders(id) == before + [.send(from: 0, upTo: 5, on: bench.link)])
    }

    /// A queued one is on disk before its caller hears of it, and nothing of it is left where it cannot be.
    @Test func queued() throws {
        var bench = try TransferBench()
        let (first, second) = (bench.freshID(), bench.freshID())
        bench.bench.isDiskHeld = true
        #expect(bench.bench.call(.resource(.send([bench.draft(first, isQueued: true)]))) == nil)
        let call = bench.bench.lastCall
        #expect(bench.orders(first).isEmpty)
        bench.bench.releaseDisk()
        #expect(bench.bench.answers[call]?.resources?.map(\.id) == [first])
        bench.bench.diskError = EarshotError(.storage, "no")
        #expect(bench.bench.call(.resource(.send([bench.draft(second, source: .spool, isQueued: true)])))?.error == .storage)
        #expect(bench.orders(second) == [.discard(.spool)])
        #expect(throws: EarshotError.self) { try bench.row(second) }
    }

    /// A resource that is not being offered is shown as queued; on the disk and with the peer its state is the same.
    @Test func aResourceThatWaitsIsShownAsQueued() throws {
        var bench = try TransferBench()
        let id = bench.send()
        #expect(try bench.row(id).queued == nil, "the receiver has the offer")
        bench.lose()
        bench.report(id, .stopped)
        #expect(try bench.row(id).queued == true && bench.row(id).state == .offered)
        let second = bench.freshID()
        #expect(bench.bench.call(.resource(.send([bench.draft(second)])))?.resources?.map(\.queued) == [true])
        try bench.connect()
        #expect(try bench.row(id).queued == nil && bench.row(second).queued == nil)
        bench.say(.resourceRefuse(ResourceRefuse(id: id, refusal: Refusal(.declined, "no"))))
        #expect(try bench.row(id).queued == nil)
    }

    /// A body that passes by cannot be read again; its caller hears how it ended.
    @Test(arguments: ["lost", "gone", "done"]) func aBody(_ how: String) throws {
        var bench = try TransferBench()
        let id = bench.send(source: .body)
        let call = bench.bench.lastCall
        bench.say(.resourceAccept(ResourceAccept(id: id, offset: 0, limit: 10)))
        switch how {
        case "lost": bench.lose()
        case "gone": bench.report(id, .abandoned)
        default:
            bench.report(id, .sent(to: 10))
            bench.report(id, .digested([1]))
            bench.say(.resourceDone(id))
        }
        let expected: [String: EarshotError.Code] = ["lost": .unavailable, "gone": .cancelled]
        let row = bench.bench.answers[call]?.resource
        #expect(row?.error == expected[how] && row?.state.isFinal == true)
    }

    /// What a receiver takes before it is asked, or beyond the end, moves nothing, and no number of bytes is too large to be counted.
    @Test func acceptancesBeforeTheirTime() throws {
        var bench = try TransferBench()
        let size = WireLimits.resourceSize
        let id = bench.send(size: size)
        bench.say(.resourceHave(ResourceHave(id: id, offset: 5, digest: [1])))
        for offset in [0, size, 0, size, 0, size] {
            bench.say(.resourceAccept(ResourceAccept(id: id, offset: offset, limit: offset)))
            bench.bench.advance(.milliseconds(60))
        }
        #expect(try bench.row(id).transferred == 0 && bench.row(id).state == .offered)
        bench.report(id, .compared([1]))
        bench.say(.resourceAccept(ResourceAccept(id: id, offset: 5, limit: .max)))
        #expect(try bench.row(id).state == .offered)
        bench.say(.resourceAccept(ResourceAccept(id: id, offset: 5, limit: 6)))
        for offset in [size, 0, size, 0, .max] {
            bench.report(id, .sent(to: offset))
            bench.bench.advance(.milliseconds(60))
        }
        #expect(try bench.row(id).transferred == size)
    }

    /// The data connection before says that it has ended when the next one moves already: how far that is, is asked all the same.
    @Test func dataConnectionsThatOverlap() throws {
        var bench = try TransferBench()
        let size = 2 * EarshotLimits.dataThreshold
        let id = bench.send(size: size)
        for offset in [0, 7] as [UInt64] {
            bench.say(.resourceAccept(ResourceAccept(id: id, offset: offset, limit: offset)))
            bench.report(id, .dataOpened(true))
        }
        bench.report(id, .dataSent(to: 9))
        bench.bench.advance(EarshotLimits.progressInterval)
        #expect(bench.orders(id).last == .look)
    }

    // MARK: Ends

    /// What ended while its peer was away is told when that is back; and a receiver's row that goes is remembered.
    @Test func endsAreTold() throws {
        var bench = try TransferBench()
        let id = bench.send()
        bench.lose()
        bench.report(id, .stopped)
        #expect(bench.bench.call(.resource(.remove(id)))?.resource?.state == .cancelled)
        try bench.connect()
        #expect(bench.sent().contains { if case .resourceCancel(let cancel) = $0 { cancel.id == id } else { false } })
        let own = bench.settled()
        bench.report(own, .stopped)
        #expect(bench.bench.call(.resource(.remove(own))) == nil)
        let call = bench.bench.lastCall
        bench.report(own, .contentRemoved(for: call, nil))
        #expect(bench.bench.answers[call] == .done)
        #expect(throws: EarshotError.self) { try bench.row(own) }
        _ = bench.sent()
        _ = bench.offered(id: own)
        #expect(bench.sent() == [.resourceDone(own)])
    }

    /// Nothing of a session that has ended goes on.
    @Test func theSessionEnds() throws {
        var bench = try TransferBench()
        let (sent, received) = (bench.send(), bench.offered())
        bench.bench.call(.leave(bench.session))
        #expect(try bench.row(sent).state.isFinal && bench.row(received).state.isFinal)
        for id in [sent, received] { #expect(bench.orders(id).contains(.stop(isKept: false))) }
    }
}
