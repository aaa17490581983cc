import EarshotWire
import OrderedCollections
import Testing

@testable import EarshotCore
@testable import EarshotWire

/// The core's decisions about resources, on calls, on the peer's frames, on the disk's reports, and when a transfer depends on something
/// that ends.
@Suite struct TransferTests {
    // MARK: Receiving

    @Test func fromItsOfferToItsEnd() throws {
        var bench = try TransferBench()
        let id = bench.offered()
        #expect(bench.sent().isEmpty, "not before there is room")
        bench.report(id, .held(nil))
        bench.report(id, .began)
        #expect(bench.sent() == [.resource(.accept(ResourceAccept(id: id, offset: 0, limit: 10)))])
        bench.report(id, .written(to: 10))
        bench.bench.isDiskHeld = true
        bench.say(.resource(.end(ResourceEnd(id: id, algorithm: .xxh3, digest: [1]))))
        bench.report(id, .settled("xxh3:01"))
        #expect(bench.sent().isEmpty && bench.finished.isEmpty, "its row is not on disk")
        bench.bench.releaseDisk()
        #expect(bench.sent() == [.resource(.done(id))])
        let row = try bench.row(id)
        #expect(row.state == .completed && row.inSpool && row.digest == "xxh3:01" && bench.finished == [row])
        #expect(bench.orders(id).last == .stop(isKept: true))
        bench.report(id, .stopped)
        #expect(bench.bench.holds.isEmpty)
        // The resource is offered again, as its sender has not been told.
        bench.lose()
        try bench.connect()
        _ = bench.sent()
        _ = bench.offered(id: id)
        #expect(bench.sent() == [.resource(.done(id))])
    }

    /// The sender is told once the file is in its place, and that is on disk.
    @Test func putInPlace() throws {
        var bench = try TransferBench { $0.putsInPlace = true }
        let id = bench.settled()
        #expect(bench.orders(id).contains { if case .place = $0 { true } else { false } })
        #expect(bench.bench.call(.resource(.remove(id)))?.error == .conflict, "it is too late")
        _ = bench.sent()
        // A late frame of its sender, after the end.
        bench.report(id, .failed(TransferFailure(EarshotError(.notFound, "no"), told: Refusal(code: .unavailable))))
        bench.report(id, .placed(.success("/there/x")))
        #expect(bench.sent().isEmpty, "its copy in the spool is not gone")
        bench.report(id, .contentRemoved(for: nil, nil))
        #expect(bench.sent() == [.resource(.done(id))])
        let row = try bench.row(id)
        #expect(row.path == "/there/x" && !row.inSpool && row.state == .completed && row.error == nil)
    }

    /// The new row is written behind the removal of the old one. It is listed, as on disk, and can be removed likewise.
    @Test func offeredAndTakenBackWhileItsRowIsBeingRemoved() throws {
        var bench = try TransferBench { $0.policy.acceptResources = .ask }
        let refusal = Refusal(code: .timedOut, explanation: "no")
        let id = bench.offered()
        bench.say(.resource(.cancel(ResourceRefuse(id: id, refusal: refusal))))
        #expect(try bench.row(id).state == .failed)
        bench.bench.isDiskHeld = true
        #expect(bench.bench.call(.resource(.remove(id))) == nil)
        #expect(bench.offered(id: id) == id)
        bench.say(.resource(.cancel(ResourceRefuse(id: id, refusal: refusal))))
        bench.bench.releaseDisk()
        #expect(try bench.row(id).state == .failed)
        #expect(bench.bench.call(.resource(.remove(id))) == .done)
        #expect(throws: EarshotError.self) { try bench.row(id) }
    }

    /// The disk was full at the acceptance, and no longer when bytes moved.
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

    /// Its caller may try again, unless the session is over.
    @Test(arguments: [true, false]) func aBodyEndsWithARestart(isInSession: Bool) throws {
        var bench = try TransferBench()
        let id = bench.freshID()
        let row = Resource(
            id: id, direction: .outgoing, peerID: isInSession ? bench.peer : peerID(2), peerName: "x", name: "x", kind: .file, size: 10,
            state: .transferring, created: bench.bench.now.wall)
        let stored = StoredTransfer(id: id, source: .body, isTaken: true, expiry: row.created + .seconds(60))
        bench.bench.handle(.transfers([LoadedTransfer(row: row, stored: stored)], []))
        #expect(try bench.row(id).state == .failed)
        #expect(try bench.row(id).error == (isInSession ? .unavailable : .notConnected))
    }

    /// If the file cannot be moved, it stays in the spool, and the row says why. If its name was taken meanwhile, the sender is told
    /// instead.
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

    /// The disk refuses to record the failure: the content stays here, as the disk says.
    @Test func notPutInPlaceAndNotRecorded() throws {
        var bench = try TransferBench { $0.putsInPlace = true }
        let id = bench.settled()
        _ = bench.sent()
        bench.bench.diskError = EarshotError(.storage, "full")
        bench.report(id, .placed(.failure(EarshotError(.conflict, "no"))))
        let row = try bench.row(id)
        #expect(row.state == .completed && row.inSpool && row.error == .conflict)
        #expect(!bench.orders(id).contains(.removeContent(for: nil)))
        #expect(bench.sent() == [.resource(.done(id))])
    }

    /// The disk refuses the row: the resource has not arrived.
    @Test func theRowCannotBeWritten() throws {
        var bench = try TransferBench()
        bench.bench.diskError = EarshotError(.storage, "no")
        let id = bench.settled()
        #expect(bench.orders(id).contains(.removeContent(for: nil)))
        bench.report(id, .contentRemoved(for: nil, nil))
        #expect(try bench.row(id).state == .failed)
        #expect(bench.refusals() == [.unavailable])
    }

    /// All bytes have arrived: the transfer finishes whatever happens to the connection.
    @Test func aLostConnectionLeavesWhatHasArrived() throws {
        var bench = try TransferBench()
        let moving = bench.offered()
        let settling = bench.offered()
        for id in [moving, settling] {
            bench.report(id, .held(nil))
            bench.report(id, .began)
            bench.report(id, .written(to: 10))
        }
        bench.say(.resource(.end(ResourceEnd(id: settling, algorithm: .xxh3, digest: [1]))))
        bench.lose()
        #expect(try bench.row(moving).state == .paused)
        #expect(bench.orders(moving).last == .stop(isKept: true))
        bench.report(settling, .settled("xxh3:01"))
        #expect(try bench.row(settling).state == .completed)
    }

    /// An offer that is repeated before the last mover has stopped is handled then.
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

    // MARK: The user's answer

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
        // Before the user has decided.
        let first = bench.offered()
        bench.report(first, .room(failure))
        #expect(try bench.row(first).error == .noSpace)
        #expect(bench.sent().last == .resource(.refuse(ResourceRefuse(id: first, refusal: failure.told))), "where files are is not told")
        // After the user has decided.
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

    /// On another connection the sender does not know what the answer refers to until it has repeated the offer.
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
        bench.say(.resource(.accept(ResourceAccept(id: id, offset: 0, limit: 10))))
        #expect(bench.orders(id).last == .send(from: 0, upTo: 10, on: bench.link))
        bench.report(id, .sent(to: 10))
        #expect(bench.orders(id).last == .digest(.xxh3))
        bench.report(id, .digested([0x0A]))
        #expect(bench.sent() == [.resource(.end(ResourceEnd(id: id, algorithm: .xxh3, digest: [0x0A])))])
        bench.say(.resource(.done(id)))
        let row = try bench.row(id)
        #expect(row.state == .completed && row.digest == "xxh3:0a" && bench.finished == [row])
    }

    /// The receiver's confirmation was lost with the connection, and the source has changed since: the old content has arrived.
    @Test func anotherSourceSinceItArrived() throws {
        var bench = try TransferBench()
        let id = bench.send()
        bench.say(.resource(.accept(ResourceAccept(id: id, offset: 0, limit: 10))))
        bench.report(id, .sent(to: 10))
        bench.report(id, .digested([1]))
        bench.lose()
        bench.report(id, .stopped)
        try bench.connect()
        _ = bench.sent()
        bench.report(id, .opened(OpenedSource(size: 5, stamp: "2")))
        #expect(bench.sent() == [.resource(.offer(ResourceOffer(session: bench.session, id: id, kind: .file, size: 5, name: "x")))])
        bench.say(.resource(.done(id)))
        #expect(try bench.row(id).size == 10 && bench.row(id).state == .completed)
    }

    /// The receiver accepts the changed source, from its beginning.
    @Test func anotherSourceBeforeItArrived() throws {
        var bench = try TransferBench()
        let id = bench.send()
        bench.lose()
        bench.report(id, .stopped)
        try bench.connect()
        bench.report(id, .opened(OpenedSource(size: 5, stamp: "2")))
        #expect(try bench.row(id).size == 10)
        bench.say(.resource(.have(ResourceHave(id: id, offset: 3, digest: [1]))))
        #expect(bench.sent().last == .resource(.from(ResourceFrom(id: id, offset: 0))))
        bench.say(.resource(.accept(ResourceAccept(id: id, offset: 0, limit: 5))))
        #expect(try bench.row(id).size == 5)
        #expect(bench.orders(id).last == .send(from: 0, upTo: 5, on: bench.link))
    }

    /// Nothing of a changed source is sent before its row is on disk: a restart would take received bytes for those of the old source.
    @Test(arguments: [nil, EarshotError(.storage, "no")]) func anotherSourceIsOnDiskFirst(error: EarshotError?) throws {
        var bench = try TransferBench()
        let id = bench.send()
        bench.lose()
        bench.report(id, .stopped)
        try bench.connect()
        bench.report(id, .opened(OpenedSource(size: 5, stamp: "2")))
        let before = bench.orders(id)
        bench.bench.isDiskHeld = true
        for limit in [3, 5] as [UInt64] { bench.say(.resource(.accept(ResourceAccept(id: id, offset: 0, limit: limit)))) }
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

    /// The connection was lost before the row was on disk: the transfer starts again on the next connection, with the source as it is then.
    @Test func anotherSourceIsOnDiskTooLate() throws {
        var bench = try TransferBench()
        let id = bench.send()
        for _ in 0..<2 {
            bench.lose()
            bench.report(id, .stopped)
            try bench.connect()
            bench.report(id, .opened(OpenedSource(size: 5, stamp: "2")))
            bench.bench.isDiskHeld = true
            bench.say(.resource(.accept(ResourceAccept(id: id, offset: 0, limit: 5))))
        }
        let before = bench.orders(id)
        bench.bench.releaseDisk()
        #expect(bench.orders(id) == before + [.send(from: 0, upTo: 5, on: bench.link)])
    }

    /// A queued transfer is on disk before its caller is answered. If it cannot be written, nothing of it remains.
    @Test func aQueuedTransferIsOnDiskBeforeItsAnswer() throws {
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

    /// A resource that is not being offered is shown as queued. Its stored state, and the peer's, do not change.
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
        bench.say(.resource(.refuse(ResourceRefuse(id: id, refusal: Refusal(.declined, "no")))))
        #expect(try bench.row(id).queued == nil)
    }

    /// A streamed body cannot be read again. Its caller is told how the transfer ended.
    @Test(arguments: ["lost", "gone", "done"]) func theCallerOfABodyLearnsItsEnd(_ how: String) throws {
        var bench = try TransferBench()
        let id = bench.send(source: .body)
        let call = bench.bench.lastCall
        bench.say(.resource(.accept(ResourceAccept(id: id, offset: 0, limit: 10))))
        switch how {
        case "lost": bench.lose()
        case "gone": bench.report(id, .abandoned)
        default:
            bench.report(id, .sent(to: 10))
            bench.report(id, .digested([1]))
            bench.say(.resource(.done(id)))
        }
        let expected: [String: EarshotError.Code] = ["lost": .unavailable, "gone": .cancelled]
        let row = bench.bench.answers[call]?.resource
        #expect(row?.error == expected[how] && row?.state.isFinal == true)
    }

    /// An acceptance before the offer, or beyond the end, moves nothing, and no number of bytes overflows.
    @Test func acceptancesBeforeTheirTime() throws {
        var bench = try TransferBench()
        let size = WireLimits.resourceSize
        let id = bench.send(size: size)
        bench.say(.resource(.have(ResourceHave(id: id, offset: 5, digest: [1]))))
        for offset in [0, size, 0, size, 0, size] {
            bench.say(.resource(.accept(ResourceAccept(id: id, offset: offset, limit: offset))))
            bench.bench.advance(.milliseconds(60))
        }
        #expect(try bench.row(id).transferred == 0 && bench.row(id).state == .offered)
        bench.report(id, .compared([1]))
        bench.say(.resource(.accept(ResourceAccept(id: id, offset: 5, limit: .max))))
        #expect(try bench.row(id).state == .offered)
        bench.say(.resource(.accept(ResourceAccept(id: id, offset: 5, limit: 6))))
        for offset in [size, 0, size, 0, .max] {
            bench.report(id, .sent(to: offset))
            bench.bench.advance(.milliseconds(60))
        }
        #expect(try bench.row(id).transferred == size)
    }

    /// The previous data connection reports its end when the next one is already moving: the progress of the next one is still requested.
    @Test func dataConnectionsThatOverlap() throws {
        var bench = try TransferBench()
        let size = 2 * EarshotLimits.dataThreshold
        let id = bench.send(size: size)
        for offset in [0, 7] as [UInt64] {
            bench.say(.resource(.accept(ResourceAccept(id: id, offset: offset, limit: offset))))
            bench.bench.dataOpened(TransferID(id), true)
        }
        bench.report(id, .dataSent(to: 9))
        bench.bench.advance(EarshotLimits.progressInterval)
        #expect(bench.orders(id).last == .look)
    }

    // MARK: Ends

    /// An end during the peer's absence is reported when the peer is back. The end of an incoming transfer is remembered after its row is
    /// removed.
    @Test func endsAreTold() throws {
        var bench = try TransferBench()
        let id = bench.send()
        bench.lose()
        bench.report(id, .stopped)
        #expect(bench.bench.call(.resource(.remove(id)))?.resource?.state == .cancelled)
        try bench.connect()
        #expect(bench.sent().contains { if case .resource(.cancel(let cancel)) = $0 { cancel.id == id } else { false } })
        let own = bench.settled()
        bench.report(own, .stopped)
        #expect(bench.bench.call(.resource(.remove(own))) == nil)
        let call = bench.bench.lastCall
        bench.report(own, .contentRemoved(for: call, nil))
        #expect(bench.bench.answers[call] == .done)
        #expect(throws: EarshotError.self) { try bench.row(own) }
        _ = bench.sent()
        _ = bench.offered(id: own)
        #expect(bench.sent() == [.resource(.done(own))])
    }

    /// No transfer continues after its session has ended.
    @Test func theSessionEnds() throws {
        var bench = try TransferBench()
        let (sent, received) = (bench.send(), bench.offered())
        bench.bench.call(.leave(bench.session))
        #expect(try bench.row(sent).state.isFinal && bench.row(received).state.isFinal)
        for id in [sent, received] { #expect(bench.orders(id).contains(.stop(isKept: false))) }
    }
}
