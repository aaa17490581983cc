import EarshotWire
import OrderedCollections
import Testing

@testable import EarshotCore
@testable import EarshotWire

/// The steps that follow the end of a transfer only once that is on disk.
@Suite struct TransferEndTests {
    /// A body in the spool is removed once the end of its transfer is on disk: a start that found the transfer open would have nothing to
    /// send.
    @Test(arguments: [nil, EarshotError(.noSpace, "full")]) func aQueuedBodyGoesWithItsEnd(_ error: EarshotError?) throws {
        var bench = try TransferBench()
        let id = bench.freshID()
        bench.bench.call(.resource(.send([bench.draft(id, source: .spool, isQueued: true)])))
        bench.report(id, .opened(OpenedSource(size: 10, stamp: "1")))
        bench.bench.isDiskHeld = true
        bench.say(.resource(.done(id)))
        #expect(try bench.row(id).state == .completed)
        #expect(!bench.orders(id).contains(.discard(.spool)))
        if error != nil { bench.bench.handle(.rowsRefused([id])) }
        bench.bench.releaseDisk()
        guard error != nil else {
            #expect(bench.orders(id).contains(.discard(.spool)))
            return
        }
        #expect(!bench.orders(id).contains(.discard(.spool)), "the disk does not know of it")
        bench.bench.advance(EarshotLimits.keepPause)
        #expect(bench.orders(id).contains(.discard(.spool)))
        #expect(bench.bench.keptTransfers.count { if case .put(let row, _) = $0 { row.state == .completed } else { false } } == 2)
    }

    /// Many transfers that end at once need one commit. A body is removed from the spool even if its row is removed meanwhile.
    @Test func queuedBodiesThatEndTogether() throws {
        var bench = try TransferBench()
        let ids = (0..<3).map { _ in bench.freshID() }
        for id in ids { bench.bench.call(.resource(.send([bench.draft(id, source: .spool, isQueued: true)]))) }
        bench.bench.isDiskHeld = true
        let before = bench.bench.commits.count
        bench.say(.sessionEnd(bench.session))
        #expect(bench.bench.commits.count == before + 2, "the session's end, and theirs")
        bench.bench.handle(.rowsRefused([ids[0]]))
        bench.bench.releaseDisk()
        #expect(ids.map { bench.orders($0).contains(.discard(.spool)) } == [false, true, true])
        bench.bench.call(.resource(.remove(ids[0])))
        bench.bench.advance(EarshotLimits.keepPause)
        #expect(bench.orders(ids[0]).contains(.discard(.spool)))
    }

    /// The caller that cancels a transfer is answered once no start would resume it.
    @Test func cancelledWhenThatIsOnDisk() throws {
        var bench = try TransferBench()
        let id = bench.send()
        bench.bench.isDiskHeld = true
        #expect(bench.bench.call(.resource(.remove(id))) == nil)
        #expect(try bench.row(id).state == .cancelled)
        bench.bench.releaseDisk()
        #expect(bench.bench.answers[bench.bench.lastCall]?.resource?.state == .cancelled)
    }

    /// A later file with the same name has replaced it: its row no longer names that place.
    @Test func replacedInItsPlace() throws {
        var bench = try TransferBench { $0.putsInPlace = true }
        func place(_ path: String) -> ResourceID {
            let id = bench.settled()
            bench.report(id, .placed(.success(path)))
            bench.report(id, .contentRemoved(for: nil, nil))
            bench.report(id, .stopped)
            return id
        }
        let (first, other, second) = (place("/there/x"), place("/there/y"), place("/there/x"))
        #expect(try bench.row(first).path == nil && bench.row(first).state == .completed)
        #expect(try bench.row(other).path == "/there/y" && bench.row(second).path == "/there/x")
    }
}
