import EarshotWire
import Testing

@testable import EarshotCore
@testable import EarshotWire

/// How rows of transfers go, and what comes while they do.
@Suite struct TransferRemovalTests {
    private let refused = EarshotError(.storage, "no")

    /// What is written behind the removal would have the row come back.
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
        // It is there as it was.
        #expect(bench.bench.call(.resource(.dropContent(id))) == nil)
        #expect(bench.orders(id).last == .removeContent(for: bench.bench.lastCall))
        bench.report(id, .contentRemoved(for: bench.bench.lastCall, nil))
        #expect(bench.bench.call(.resource(.remove(id))) == .done)
    }

    /// Each caller is answered once the spool has let go of it, and a spool that refuses is asked again.
    @Test func droppedTwice() throws {
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
        // So does one who has the row removed.
        #expect(bench.bench.call(.resource(.remove(id))) == nil)
        let remover = bench.bench.lastCall
        #expect(bench.orders(id).last == .removeContent(for: remover))
        for caller in [callers[1], remover] {
            bench.report(id, .contentRemoved(for: caller, nil))
            #expect(bench.bench.answers[caller] == .done)
        }
    }

    /// Once it is gone, the next caller is answered at once.
    @Test func droppedBefore() throws {
        var bench = try TransferBench()
        let id = bench.settled()
        bench.report(id, .stopped)
        #expect(bench.bench.call(.resource(.dropContent(id))) == nil)
        bench.report(id, .contentRemoved(for: bench.bench.lastCall, nil))
        #expect(bench.bench.call(.resource(.dropContent(id))) == .done)
        #expect(bench.bench.call(.resource(.remove(id))) == .done)
    }

    /// Offered anew, it has a removal of its own, and goes with that one alone.
    @Test func removedOfferedAnewAndRemoved() throws {
        var bench = try TransferBench { $0.policy.acceptResources = .ask }
        bench.bench.isDiskHeld = true
        let before = bench.bench.commits.count
        let id = bench.freshID()
        for _ in 0..<2 {
            _ = bench.offered(id: id)
            bench.say(.resourceCancel(ResourceRefuse(id: id, refusal: Refusal(code: .timedOut, explanation: "no"))))
            #expect(bench.bench.call(.resource(.remove(id))) == nil)
        }
        let removals = bench.bench.commits.dropFirst(before)
        #expect(removals.count == 2)
        for (removal, error) in zip(removals, [nil, self.refused]) { bench.bench.handle(.committed(removal, error)) }
        #expect(try bench.row(id).state == .failed, "the disk has it")
    }

    /// Its row goes once its mover has kept what there was, or dropped it: what is offered again meanwhile is answered then. One that had
    /// failed begins anew, with a mover of its own.
    @Test(arguments: [WireErrorCode.cancelled, .timedOut]) func removedBeforeItsMoverHasStopped(_ end: WireErrorCode) throws {
        var bench = try TransferBench()
        let id = bench.offered()
        bench.report(id, .held(nil))
        bench.report(id, .began)
        if end == .timedOut {
            bench.say(.resourceCancel(ResourceRefuse(id: id, refusal: Refusal(code: end))))
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

    /// What a person has cancelled, and the disk has refused, would go on with the next start.
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
        // Not behind its removal; and that it is gone is written too.
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

    /// A caller that waits for that is not left waiting by a daemon that stops.
    @Test func stoppedBeforeItsMover() throws {
        var bench = try TransferBench()
        let id = bench.offered()
        bench.bench.call(.resource(.remove(id)))
        #expect(bench.bench.call(.resource(.remove(id))) == nil)
        for input in [Input.stop, .streamsOver] { bench.bench.handle(input) }
        #expect(bench.bench.answers[bench.bench.lastCall]?.error == .unavailable)
    }

    /// Cancelled and removed while the disk was busy with it: that is taken back first, and then its row goes.
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

    /// The disk does not take that back: it has the file as received, which a start is to find.
    @Test func cannotBeTakenBack() throws {
        var bench = try TransferBench()
        bench.bench.isDiskHeld = true
        let before = bench.bench.commits.count
        let id = bench.settled()
        bench.bench.call(.resource(.remove(id)))
        bench.report(id, .stopped)
        // It is whole, it is over, and that it is not whole any more.
        for (index, error) in [nil, nil, self.refused].enumerated() {
            try #require(bench.bench.commits.count > before + index)
            bench.bench.handle(.committed(bench.bench.commits[before + index], error))
        }
        #expect(try bench.row(id).state == .cancelled)
        #expect(!bench.orders(id).contains(.removeContent(for: nil)))
        // It goes with its row.
        bench.bench.call(.resource(.remove(id)))
        bench.bench.handle(.committed(try #require(bench.bench.commits.last), nil))
        #expect(bench.orders(id).last == .removeContent(for: bench.bench.lastCall))
    }

    /// Cancelled before the disk has it whole, and removed: that is taken away first, and then its row goes, with what could not be taken away.
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

    /// It has failed, and the disk has it as received: it does not begin anew before that is gone, which would go with it.
    @Test func offeredAnewOverWhatIsLeft() throws {
        var bench = try TransferBench()
        bench.bench.isDiskHeld = true
        let id = bench.settled()
        bench.say(.resourceCancel(ResourceRefuse(id: id, refusal: Refusal(code: .timedOut, explanation: "no"))))
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
