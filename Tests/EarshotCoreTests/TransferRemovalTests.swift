import EarshotWire
import Testing

@testable import EarshotCore
@testable import EarshotWire

/// The removal of rows of transfers, and concurrent events.
@Suite struct TransferRemovalTests {
    private let refused = EarshotError(.storage, "no")

    /// A row that is written behind its removal would return.
    @Test func nothingIsWrittenBehindTheRemoval() throws {
        var bench = try TransferBench()
        let id = bench.settled()
        bench.report(id, .stopped)
        bench.bench.isDiskHeld = true
        #expect(bench.bench.call(.resource(.remove(id))) == nil)
        let call = bench.bench.lastCall
        #expect(bench.bench.call(.resource(.dropContent(id)))?.error == .conflict)
        #expect(bench.bench.call(.resource(.remove(id)))?.error == .conflict)
        bench.bench.diskError = self.refused
        bench.bench.releaseDisk()
        #expect(bench.bench.answers[call]?.error == .storage)
        // The row is unchanged.
        #expect(bench.bench.call(.resource(.dropContent(id))) == nil)
        #expect(bench.orders(id).last == .removeContent(for: bench.bench.lastCall))
        bench.report(id, .contentRemoved(for: bench.bench.lastCall, nil))
        #expect(bench.bench.call(.resource(.remove(id))) == .done)
    }

    /// Each caller is answered once the spool has removed the content, and a spool that refuses is asked again.
    @Test func eachCallerIsAnsweredOnceTheContentIsRemoved() throws {
        var bench = try TransferBench()
        let id = bench.settled()
        bench.report(id, .stopped)
        let before = bench.bench.transferOperations.count
        let callers = (0..<2).map { _ in
            #expect(bench.bench.call(.resource(.dropContent(id))) == nil)
            return bench.bench.lastCall
        }
        #expect(bench.orders(id).suffix(2) == callers.map { .removeContent(for: $0) })
        #expect(bench.bench.transferOperations.count == before + 1, "its row says so already")
        bench.report(id, .contentRemoved(for: callers[0], self.refused))
        #expect(bench.bench.answers[callers[0]]?.error == .storage)
        #expect(bench.bench.answers[callers[1]] == nil)
        // A caller that removes the row has the content removed too.
        #expect(bench.bench.call(.resource(.remove(id))) == nil)
        let remover = bench.bench.lastCall
        #expect(bench.orders(id).last == .removeContent(for: remover))
        for caller in [callers[1], remover] {
            bench.report(id, .contentRemoved(for: caller, nil))
            #expect(bench.bench.answers[caller] == .done)
        }
    }

    /// Once the content is gone, the next caller is answered at once.
    @Test func aDropOfRemovedContentIsAnsweredAtOnce() throws {
        var bench = try TransferBench()
        let id = bench.settled()
        bench.report(id, .stopped)
        #expect(bench.bench.call(.resource(.dropContent(id))) == nil)
        bench.report(id, .contentRemoved(for: bench.bench.lastCall, nil))
        #expect(bench.bench.call(.resource(.dropContent(id))) == .done)
        #expect(bench.bench.call(.resource(.remove(id))) == .done)
    }

    /// A resource that is offered again has its own removal, and goes only with that.
    @Test func removedOfferedAnewAndRemoved() throws {
        var bench = try TransferBench { $0.policy.acceptResources = .ask }
        bench.bench.isDiskHeld = true
        let before = bench.bench.commits.count
        let id = bench.freshID()
        for _ in 0..<2 {
            _ = bench.offered(id: id)
            bench.say(.resource(.cancel(ResourceRefuse(id: id, refusal: Refusal(code: .timedOut, explanation: "no")))))
            #expect(bench.bench.call(.resource(.remove(id))) == nil)
        }
        let removals = bench.bench.commits.dropFirst(before)
        #expect(removals.count == 2)
        for (removal, error) in zip(removals, [nil, self.refused]) { bench.bench.handle(.committed(removal, error)) }
        #expect(try bench.row(id).state == .failed, "the disk has it")
    }

    /// The row is removed once its mover has kept or discarded the content. A repeated offer is answered then. A failed transfer starts
    /// again, with a new mover.
    @Test(arguments: [WireErrorCode.cancelled, .timedOut]) func removedBeforeItsMoverHasStopped(_ end: WireErrorCode) throws {
        var bench = try TransferBench()
        let id = bench.offered()
        bench.report(id, .held(nil))
        bench.report(id, .began)
        if end == .timedOut {
            bench.say(.resource(.cancel(ResourceRefuse(id: id, refusal: Refusal(code: end)))))
        } else {
            bench.lose()
            bench.bench.call(.resource(.remove(id)))
            try bench.connect()
        }
        #expect(bench.bench.call(.resource(.remove(id))) == nil)
        let call = bench.bench.lastCall
        #expect(bench.bench.call(.resource(.remove(id)))?.error == .conflict)
        _ = bench.sent()
        _ = bench.offered(id: id)
        bench.report(id, .stopped)
        #expect(bench.bench.answers[call] == .done)
        if end == .timedOut {
            #expect(try bench.row(id).state == .offered)
            #expect(bench.orders(id).last == .resume(try bench.row(id), QuotaShare(of: bench.peer, isTrusted: false)))
        } else {
            #expect(throws: EarshotError.self) { try bench.row(id) }
            #expect(bench.orders(id).last == .discard(.none))
            #expect(bench.refusals() == [.cancelled])
        }
    }

    /// A cancelled transfer whose row the disk refused would resume after the next start.
    @Test func whatTheDiskRefusesIsWrittenAgain() throws {
        var bench = try TransferBench()
        let (over, open) = (bench.send(), bench.send())
        bench.bench.call(.resource(.remove(over)))
        let row = try bench.row(over)
        var before = bench.bench.keptTransfers.count
        bench.bench.handle(.rowsRefused([over, open]))
        bench.bench.advance(EarshotLimits.keepPause)
        #expect(Array(bench.bench.keptTransfers.dropFirst(before)) == [.put(row, isNew: false), .removeTransfer(over)])
        bench.report(over, .stopped)
        // The row is not written behind its removal, and its removal is retried too.
        bench.bench.isDiskHeld = true
        bench.bench.handle(.rowsRefused([over]))
        bench.bench.call(.resource(.remove(over)))
        before = bench.bench.keptTransfers.count
        bench.bench.advance(EarshotLimits.keepPause)
        #expect(bench.bench.keptTransfers.count == before)
        bench.bench.releaseDisk()
        bench.bench.handle(.stop)
        #expect(Array(bench.bench.keptTransfers.dropFirst(before)) == [.remove(over, nil)])
    }

    /// A daemon that stops answers a caller that waits for the removal.
    @Test func stoppedBeforeItsMover() throws {
        var bench = try TransferBench()
        let id = bench.offered()
        bench.bench.call(.resource(.remove(id)))
        #expect(bench.bench.call(.resource(.remove(id))) == nil)
        for input in [Input.stop, .streamsOver] { bench.bench.handle(input) }
        #expect(bench.bench.answers[bench.bench.lastCall]?.error == .unavailable)
    }

    /// The transfer is cancelled and removed while the disk is busy with it: the reception is undone first, then the row is removed.
    @Test func removedBeforeItIsTakenBack() throws {
        var bench = try TransferBench()
        bench.bench.isDiskHeld = true
        let id = bench.settled()
        #expect(bench.bench.call(.resource(.remove(id))) == nil, "a start would go on with it")
        let canceller = bench.bench.lastCall
        bench.report(id, .stopped)
        #expect(bench.bench.call(.resource(.dropContent(id)))?.error == .conflict, "the disk is about to have it")
        #expect(bench.bench.call(.resource(.remove(id))) == nil)
        bench.bench.releaseDisk()
        #expect(bench.bench.answers[canceller]?.resource?.state == .cancelled)
        #expect(bench.orders(id).last == .removeContent(for: nil))
        #expect(bench.bench.answers[bench.bench.lastCall] == nil)
        bench.report(id, .contentRemoved(for: nil, nil))
        #expect(bench.bench.answers[bench.bench.lastCall] == .done)
        #expect(bench.bench.transferOperations.contains(.removeResource(id)))
        if case .putResource? = bench.bench.transferOperations.last { #expect(Bool(false), "the row would be there again") }
        #expect(throws: EarshotError.self) { try bench.row(id) }
    }

    /// The disk refuses to undo the reception: it has the file as received, which a start must find.
    @Test func cannotBeTakenBack() throws {
        var bench = try TransferBench()
        bench.bench.isDiskHeld = true
        let before = bench.bench.commits.count
        let id = bench.settled()
        bench.bench.call(.resource(.remove(id)))
        bench.report(id, .stopped)
        // The commits: it is complete, it is over, and its reception is undone.
        for (index, error) in [nil, nil, self.refused].enumerated() {
            try #require(bench.bench.commits.count > before + index)
            bench.bench.handle(.committed(bench.bench.commits[before + index], error))
        }
        #expect(try bench.row(id).state == .cancelled)
        #expect(!bench.orders(id).contains(.removeContent(for: nil)))
        // The content goes with its row.
        bench.bench.call(.resource(.remove(id)))
        bench.bench.handle(.committed(try #require(bench.bench.commits.last), nil))
        #expect(bench.orders(id).last == .removeContent(for: bench.bench.lastCall))
    }

    /// The transfer is cancelled before the disk has it whole, and removed. The content is removed first, and then the row, with any
    /// content that could not be removed.
    @Test(arguments: [false, true]) func removedWhileItSettles(isStuck: Bool) throws {
        var bench = try TransferBench()
        let id = bench.whole()
        #expect(bench.bench.call(.resource(.remove(id)))?.resource?.state == .cancelled)
        #expect(bench.bench.call(.resource(.dropContent(id)))?.error == .conflict, "the disk may have it")
        #expect(bench.bench.call(.resource(.remove(id))) == nil)
        let remover = bench.bench.lastCall
        bench.report(id, .settled("xxh3:01"))
        #expect(bench.orders(id).last == .removeContent(for: nil))
        bench.report(id, .stopped)
        #expect(bench.bench.answers[remover] == nil)
        bench.report(id, .contentRemoved(for: nil, isStuck ? self.refused : nil))
        if isStuck {
            #expect(bench.bench.answers[remover] == nil && bench.orders(id).contains(.removeContent(for: remover)))
            bench.report(id, .contentRemoved(for: remover, nil))
        }
        #expect(bench.bench.answers[remover] == .done)
    }

    /// The transfer has failed, and the disk has it as received. It does not start again before that content is gone, since new content
    /// would be removed with it.
    @Test func offeredAnewOverWhatIsLeft() throws {
        var bench = try TransferBench()
        bench.bench.isDiskHeld = true
        let id = bench.settled()
        bench.say(.resource(.cancel(ResourceRefuse(id: id, refusal: Refusal(code: .timedOut, explanation: "no")))))
        bench.report(id, .stopped)
        for error in [nil, self.refused] { bench.bench.handle(.committed(try #require(bench.bench.commits.last), error)) }
        #expect(try bench.row(id).state == .failed)
        #expect(bench.bench.call(.resource(.dropContent(id))) == nil)
        _ = bench.sent()
        for isLeft in [true, false] {
            if !isLeft {
                bench.bench.handle(.committed(try #require(bench.bench.commits.last), nil))
                #expect(bench.bench.core.transfers[id]?.facets.contains(.finished) == false)
                bench.report(id, .contentRemoved(for: bench.bench.lastCall, nil))
                #expect(bench.bench.core.transfers[id]?.facets.contains(.finished) == true)
            }
            _ = bench.offered(id: id)
            #expect(bench.refusals().count == (isLeft ? 1 : 0))
            #expect(try bench.row(id).state.isFinal == isLeft)
        }
    }
}
