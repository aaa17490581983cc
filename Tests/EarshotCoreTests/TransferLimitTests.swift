import EarshotWire
import NIOCore
import Testing

@testable import EarshotCore
@testable import EarshotWire

/// The limits of transfers in time, frequency and number, each tested at its boundary.
@Suite struct TransferLimitTests {
    // MARK: Time

    /// Checks that nothing happens just before the limit, and that both sides get `timed-out` at the limit.
    private func expectTimeOut(_ id: ResourceID, after limit: Duration, _ bench: inout TransferBench) throws {
        _ = bench.sent()
        bench.bench.advance(limit - .nanoseconds(1))
        #expect(try bench.sent().isEmpty && !bench.row(id).state.isFinal)
        bench.bench.advance(.nanoseconds(1))
        let told = bench.sent().compactMap { frame -> ResourceRefuse? in
            switch frame {
            case .resource(.refuse(let refuse)), .resource(.cancel(let refuse)): refuse
            default: nil
            }
        }
        #expect(told.map(\.id) == [id] && told.map(\.refusal.code) == [.timedOut])
        let row = try bench.row(id)
        #expect(row.state == .failed && row.error == .timedOut && bench.finished == [row])
    }

    /// Returns an accepted incoming transfer of which no byte has arrived yet.
    private func begun(_ bench: inout TransferBench, size: UInt64 = 1000) -> ResourceID {
        let id = bench.offered(size: size)
        bench.report(id, .held(nil))
        bench.report(id, .began)
        return id
    }

    /// The limit also holds for resumed transfers: those interrupted on earlier connections may together be more.
    @Test func incomingTransfersThatGoOn() throws {
        var bench = try TransferBench()
        var ids: [ResourceID] = []
        for _ in 0..<3 {
            let begun = (0..<EarshotLimits.incomingTransfers).map { _ in self.begun(&bench) }
            ids += begun
            bench.lose()
            for id in begun { bench.report(id, .stopped) }
            try bench.connect()
        }
        _ = bench.sent()
        for id in ids { _ = bench.offered(size: 1000, id: id) }
        func moving() -> Int { bench.bench.core.transfers.count(of: bench.peer, .taking) }
        #expect(moving() == EarshotLimits.incomingTransfers)
        #expect(bench.refusals().isEmpty)
        // Each one that ends makes room for another, and none is lost.
        for (index, id) in ids.enumerated() {
            #expect(bench.orders(id).last.map { if case .resume = $0 { true } else { false } } == true)
            bench.say(.resource(.cancel(ResourceRefuse(id: id, refusal: Refusal(code: .cancelled)))))
            bench.report(id, .stopped)
            #expect(moving() == min(EarshotLimits.incomingTransfers, ids.count - index - 1))
        }
    }

    @Test func anUnansweredOfferTimesOut() throws {
        var bench = try TransferBench { $0.policy.acceptResources = .ask }
        let id = bench.offered()
        bench.report(id, .room(nil))
        try self.expectTimeOut(id, after: EarshotLimits.offerTime, &bench)
        #expect(EarshotLimits.resourceAnswerTime > EarshotLimits.offerTime, "the one who was asked says so first")
    }

    @Test func resourceStallTimeOfASenderThatNeverSends() throws {
        var bench = try TransferBench()
        let id = self.begun(&bench)
        try self.expectTimeOut(id, after: EarshotLimits.resourceStallTime, &bench)
        #expect(bench.orders(id).last == .stop(isKept: false))
        #expect(bench.bench.core.transfers.count(of: bench.peer, .taking) == 0)
    }

    @Test func aTransferThatMovesLivesOn() throws {
        var bench = try TransferBench()
        let id = self.begun(&bench)
        bench.bench.advance(EarshotLimits.resourceStallTime - .nanoseconds(1))
        bench.report(id, .written(to: 1))
        bench.bench.advance(.nanoseconds(1))
        try self.expectTimeOut(id, after: EarshotLimits.resourceStallTime, &bench)
    }

    @Test func resourceAnswerTime() throws {
        var bench = try TransferBench()
        let id = bench.send()
        try self.expectTimeOut(id, after: EarshotLimits.resourceAnswerTime, &bench)
    }

    @Test func resourceStallTimeOfAReceiverThatTakesNothing() throws {
        var bench = try TransferBench()
        let id = bench.send()
        bench.say(.resource(.accept(ResourceAccept(id: id, offset: 0, limit: 0))))
        #expect(try bench.row(id).state == .transferring)
        try self.expectTimeOut(id, after: EarshotLimits.resourceStallTime, &bench)
    }

    /// All bytes are sent, and the receiver does not answer. For a slow disk, the limit grows by a second per `resourceDoneRate` bytes.
    @Test(
        arguments: [
            (1, EarshotLimits.resourceDoneTime),
            (EarshotLimits.resourceDoneRate - 1, EarshotLimits.resourceDoneTime),
            (EarshotLimits.resourceDoneRate, EarshotLimits.resourceDoneTime + .seconds(1)),
        ] as [(UInt64, Duration)]) func resourceDoneTime(size: UInt64, limit: Duration) throws
    {
        var bench = try TransferBench()
        let id = bench.send(size: size)
        bench.say(.resource(.accept(ResourceAccept(id: id, offset: 0, limit: size))))
        bench.report(id, .sent(to: size))
        bench.report(id, .digested([1]))
        try self.expectTimeOut(id, after: limit, &bench)
    }

    /// All bytes have moved, and the sender reads them once more for the digest: this may take longer than a stall.
    @Test func resourceDoneTimeOfADigest() throws {
        var bench = try TransferBench()
        let size = EarshotLimits.resourceDoneRate
        let sent = bench.send(size: size)
        bench.say(.resource(.accept(ResourceAccept(id: sent, offset: 0, limit: size))))
        bench.report(sent, .sent(to: size))
        try self.expectTimeOut(sent, after: EarshotLimits.resourceStallTime + EarshotLimits.resourceDoneTime + .seconds(1), &bench)
        bench = try TransferBench()
        let received = self.begun(&bench)
        bench.report(received, .written(to: 1000))
        try self.expectTimeOut(received, after: EarshotLimits.resourceStallTime + EarshotLimits.resourceDoneTime, &bench)
    }

    /// The receiver may already have all bytes, and reads them before it answers: the limit grows with their number.
    @Test(
        arguments: [
            (EarshotLimits.resourceDoneRate - 1, EarshotLimits.resourceAnswerTime),
            (EarshotLimits.resourceDoneRate, EarshotLimits.resourceAnswerTime + .seconds(1)),
        ] as [(UInt64, Duration)]) func resourceAnswerTimeOfMuch(size: UInt64, limit: Duration) throws
    {
        var bench = try TransferBench()
        let id = bench.send(size: size)
        try self.expectTimeOut(id, after: limit, &bench)
    }

    /// A body that waited for its turn when the connection was lost then waits for its peer no longer than others.
    @Test func resourceReachTimeOfABodyThatHasWaited() throws {
        var bench = try TransferBench()
        let moving = (0..<EarshotLimits.outgoingTransfers).map { _ in bench.send() }
        bench.bench.call(.resource(.sendBody(bench.draft(bench.freshID(), source: .body))))
        let call = bench.bench.lastCall
        bench.lose()
        for id in moving { bench.report(id, .stopped) }
        bench.bench.advance(EarshotLimits.resourceReachTime)
        #expect(bench.bench.answers[call]?.resource?.error == .notSent)
    }

    /// A transfer may wait for its turn longer than for an absent peer. The time for the peer begins with its absence.
    @Test func resourceResumeTimeOfOneThatHasWaited() throws {
        var bench = try TransferBench()
        let moving = (0..<EarshotLimits.outgoingTransfers).map { _ in bench.send() }
        let id = bench.send()
        bench.bench.runningAhead += EarshotLimits.resourceResumeTime
        bench.lose()
        for id in moving { bench.report(id, .stopped) }
        bench.bench.advance(EarshotLimits.resourceResumeTime - .nanoseconds(1))
        #expect(try bench.row(id).state == .offered)
        bench.bench.advance(.nanoseconds(1))
        #expect(try bench.row(id).error == .notSent)
    }

    /// The same for a transfer that the user accepts long after its sender has gone.
    @Test func resourceResumeTimeOfOneThatIsAccepted() throws {
        var bench = try TransferBench { $0.policy.acceptResources = .ask }
        let id = bench.offered()
        bench.lose()
        bench.bench.runningAhead += EarshotLimits.resourceResumeTime
        bench.bench.call(.resource(.respond(id, .accept)))
        bench.bench.advance(EarshotLimits.resourceResumeTime - .nanoseconds(1))
        #expect(try bench.row(id).state == .paused)
    }

    /// The sender is lost while space is reserved: the acceptance remains, and the transfer resumes when the sender is back.
    @Test func oneThatIsAcceptedAndInterrupted() throws {
        var bench = try TransferBench { $0.policy.acceptResources = .ask }
        let id = bench.offered()
        bench.bench.call(.resource(.respond(id, .accept)))
        let call = bench.bench.lastCall
        bench.lose()
        #expect(bench.bench.answers[call]?.resource?.state == .paused)
    }

    @Test func resourceReachTime() throws {
        var bench = try TransferBench()
        bench.lose()
        let id = bench.send()
        bench.bench.advance(EarshotLimits.resourceReachTime - .nanoseconds(1))
        #expect(try bench.row(id).state == .offered)
        bench.bench.advance(.nanoseconds(1))
        #expect(bench.finished.map(\.id) == [id] && bench.finished.map(\.error) == [.notSent])
        #expect(bench.finished.first?.errorMessage?.hasSuffix("nothing of the file left this machine") == true)
    }

    // MARK: Frequency

    @Test func progressIsPublishedOncePerInterval() throws {
        var bench = try TransferBench()
        let id = self.begun(&bench)
        func published() -> [UInt64] {
            bench.bench.events.compactMap { if case .resourceProgress(let row) = $0, row.id == id { row.transferred } else { nil } }
        }
        let before = published()
        bench.bench.advance(EarshotLimits.progressInterval - .nanoseconds(1))
        bench.report(id, .written(to: 1))
        #expect(published() == before)
        bench.bench.advance(.nanoseconds(1))
        bench.report(id, .written(to: 2))
        #expect(published() == before + [2])
    }

    /// A transfer that has moved for that long is stored as transferring.
    @Test func resourceRecordTime() throws {
        var bench = try TransferBench()
        let id = self.begun(&bench)
        func isRecorded() -> Bool {
            bench.bench.keptTransfers.contains {
                if case .put(let row, _) = $0 { row.id == id && row.state == .transferring } else { false }
            }
        }
        bench.bench.advance(EarshotLimits.resourceRecordTime - .nanoseconds(1))
        bench.report(id, .written(to: 1))
        #expect(!isRecorded())
        bench.bench.advance(.nanoseconds(1))
        bench.report(id, .written(to: 2))
        #expect(isRecorded())
    }

    // MARK: Number

    @Test func finishedTransfersAboveTheLimitAreForgotten() throws {
        var bench = try TransferBench { $0.policy.acceptResources = .ask }
        var ids: [ResourceID] = []
        for _ in 0...EarshotLimits.finishedTransfers {
            let id = bench.offered(size: 1)
            ids.append(id)
            bench.say(.resource(.cancel(ResourceRefuse(id: id, refusal: Refusal(code: .cancelled)))))
            bench.report(id, .stopped)
            // At a pace within the limit of failed offers.
            bench.bench.advance(EarshotLimits.vainOfferTime)
            if ids.count == EarshotLimits.finishedTransfers { #expect(bench.listed.count == EarshotLimits.finishedTransfers) }
        }
        #expect(bench.listed == Array(ids.dropFirst()), "the oldest goes")
    }

    /// A resource that has arrived is acknowledged, even if its sender would be refused as busy, or its source is too large by now.
    @Test func offeredAgainWhenItHasArrived() throws {
        var bench = try TransferBench { $0.maximumResourceSize = 10 }
        let id = bench.settled()
        bench.report(id, .stopped)
        let moving = self.begun(&bench, size: 10)
        for _ in 0..<EarshotLimits.vainOffers {
            let vain = bench.offered()
            bench.say(.resource(.cancel(ResourceRefuse(id: vain, refusal: Refusal(code: .cancelled)))))
            bench.report(vain, .stopped)
        }
        bench.lose()
        bench.report(moving, .stopped)
        try bench.connect()
        _ = bench.sent()
        _ = bench.offered(size: 11, id: id)
        #expect(bench.sent() == [.resource(.done(id))])
        #expect(bench.bench.core.offersInVain(bench.peer, at: bench.bench.now.monotonic))
        _ = bench.offered(id: moving)
        #expect(try bench.refusals().isEmpty && !bench.row(moving).state.isFinal, "it goes on")
        _ = bench.offered()
        #expect(bench.refusals() == [.busy])
    }

    /// The same for a complete resource that is being put in its place.
    @Test func offeredAgainWhenItIsAboutToArrive() throws {
        var bench = try TransferBench {
            $0.maximumResourceSize = 10
            $0.putsInPlace = true
        }
        let id = bench.settled()
        bench.lose()
        try bench.connect()
        _ = bench.sent()
        _ = bench.offered(size: 11, id: id)
        #expect(bench.refusals().isEmpty)
        bench.report(id, .placed(.success("/there/x")))
        bench.report(id, .contentRemoved(for: nil, nil))
        bench.report(id, .stopped)
        #expect(bench.sent() == [.resource(.done(id))])
    }

    /// Ended transfers keep their movers while the disk is busy. Beyond the limit, the next offer has to wait.
    @Test func moversAboveTheLimitRefuseTheNextOffer() throws {
        var bench = try TransferBench()
        var ids: [ResourceID] = []
        for _ in 0..<EarshotLimits.incomingMovers {
            let id = bench.offered(size: 1)
            ids.append(id)
            bench.say(.resource(.cancel(ResourceRefuse(id: id, refusal: Refusal(code: .cancelled)))))
        }
        #expect(bench.bench.core.transfers.count(of: bench.peer, .incomingMover) == EarshotLimits.incomingMovers)
        #expect(bench.bench.core.transfers.count(of: bench.peer, .taking) == 0)
        _ = bench.offered(size: 1)
        #expect(bench.refusals() == [.busy])
        bench.report(ids[0], .stopped)
        let next = self.begun(&bench, size: 1)
        #expect(bench.sent() == [.resource(.accept(ResourceAccept(id: next, offset: 0, limit: 1)))])
    }

    @Test func aFullSpoolRefusesTheNextOffer() throws {
        var bench = try TransferBench()
        for number in 0..<EarshotLimits.spooledResources - 1 {
            let row = Resource(
                id: ResourceID(high: 1, low: UInt64(number)), direction: .incoming, peerID: bench.peer, peerName: "x", name: "x",
                kind: .file, size: 0, state: .completed, created: bench.bench.now.wall, inSpool: true)
            bench.bench.core.transfers.put(TransferRecord(row: row))
        }
        let last = self.begun(&bench, size: 0)
        #expect(bench.sent() == [.resource(.accept(ResourceAccept(id: last, offset: 0, limit: 0)))])
        _ = bench.offered(size: 0)
        #expect(bench.refusals() == [.noSpace])
    }
}

extension TransferBench {
    /// The rows that a caller sees, in order.
    fileprivate var listed: [ResourceID] { self.bench.core.transfers.all.map(\.row.id) }
}
