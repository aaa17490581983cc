import EarshotWire
import Testing

@testable import EarshotCore
@testable import EarshotWire

/// The rates that the core gives to the movers of transfers.
@Suite struct TransferRateTests {
    private func rates(_ id: ResourceID, _ bench: TransferBench) -> [UInt64?] {
        bench.orders(id).compactMap { if case .pace(let rate) = $0 { .some(rate) } else { nil } }
    }

    /// Sends a resource that the peer accepts.
    private func sending(_ bench: inout TransferBench, limit: UInt64? = nil) -> ResourceID {
        let id = bench.freshID()
        let draft = ResourceDraft(
            id: id, to: Conversation(with: bench.peer), name: "x", kind: .file, size: 1000, path: "/x", source: .path, stamp: "1",
            limit: limit)
        bench.bench.call(.resource(.send([draft])))
        bench.report(id, .opened(OpenedSource(size: 1000, stamp: "1")))
        bench.say(.resource(.accept(ResourceAccept(id: id, offset: 0, limit: 1000))))
        return id
    }

    /// Returns an accepted incoming transfer of which no byte has arrived yet.
    private func receiving(_ bench: inout TransferBench, size: UInt64) -> ResourceID {
        let id = bench.offered(size: size)
        bench.report(id, .held(nil))
        bench.report(id, .began)
        return id
    }

    private func change(_ bench: inout TransferBench, _ change: (inout CoreSettings) -> Void) {
        var settings = bench.bench.core.settings
        change(&settings)
        bench.bench.handle(.settings(settings))
    }

    private func accepted(_ bench: inout TransferBench) -> [ResourceAccept] {
        bench.sent().compactMap { if case .resource(.accept(let accept)) = $0 { accept } else { nil } }
    }

    @Test func withoutALimitNothingIsPaced() throws {
        var bench = try TransferBench()
        let (sent, received) = (self.sending(&bench), self.receiving(&bench, size: 1000))
        #expect(self.rates(sent, bench).isEmpty && self.rates(received, bench).isEmpty)
    }

    /// The rate comes before the order that moves the first bytes, and only transfers that move bytes have shares.
    @Test func transfersShareTheLimit() throws {
        var bench = try TransferBench { $0.sendLimit = 10_000 }
        let waiting = bench.send()
        let first = self.sending(&bench)
        let orders = bench.orders(first)
        let pace = try #require(orders.firstIndex(of: .pace(10_000)))
        let send = try #require(orders.firstIndex(of: .send(from: 0, upTo: 1000, on: bench.link)))
        #expect(pace < send)
        let second = self.sending(&bench)
        #expect(self.rates(first, bench) == [10_000, 5000] && self.rates(second, bench) == [5000])
        // Everything is sent, and the receiver has not confirmed it yet.
        bench.report(second, .sent(to: 1000))
        bench.report(second, .digested([1]))
        #expect(self.rates(first, bench) == [10_000, 5000, 10_000] && self.rates(second, bench) == [5000])
        #expect(self.rates(waiting, bench).isEmpty)
        // The limit of the other direction is another one.
        #expect(self.rates(self.receiving(&bench, size: 1000), bench).isEmpty)
    }

    @Test func aTransfersOwnLimit() throws {
        var bench = try TransferBench()
        let alone = self.sending(&bench, limit: 3000)
        #expect(self.rates(alone, bench) == [3000])
        self.change(&bench) { $0.sendLimit = 10_000 }
        #expect(self.rates(alone, bench) == [3000])
        let other = self.sending(&bench)
        #expect(self.rates(alone, bench) == [3000] && self.rates(other, bench) == [7000])
        self.change(&bench) { $0.sendLimit = nil }
        #expect(self.rates(alone, bench) == [3000] && self.rates(other, bench) == [7000, nil])
    }

    /// A new mover begins without a rate, and gets the transfer's.
    @Test func aTransferThatResumes() throws {
        var bench = try TransferBench()
        let id = self.sending(&bench, limit: 3000)
        bench.lose()
        bench.report(id, .stopped)
        try bench.connect()
        bench.report(id, .opened(OpenedSource(size: 1000, stamp: "1")))
        #expect(self.rates(id, bench) == [3000])
        bench.say(.resource(.accept(ResourceAccept(id: id, offset: 0, limit: 1000))))
        #expect(self.rates(id, bench) == [3000, 3000])
    }

    @Test func settingsThatChange() throws {
        var bench = try TransferBench()
        let (sent, received) = (self.sending(&bench), self.receiving(&bench, size: 1000))
        self.change(&bench) {
            $0.sendLimit = 5000
            $0.receiveLimit = 2000
        }
        #expect(self.rates(sent, bench) == [5000] && self.rates(received, bench) == [2000])
        self.change(&bench) { $0.receiveLimit = nil }
        #expect(self.rates(sent, bench) == [5000] && self.rates(received, bench) == [2000, nil])
    }

    /// The last bytes may still wait for their rate after the sender's end.
    @Test func aReceivedTransferSharesUntilItIsWritten() throws {
        var bench = try TransferBench { $0.receiveLimit = 10_000 }
        let first = self.receiving(&bench, size: 10)
        let second = self.receiving(&bench, size: 10)
        bench.say(.resource(.end(ResourceEnd(id: first, algorithm: .xxh3, digest: [1]))))
        #expect(self.rates(second, bench) == [5000])
        bench.report(first, .written(to: 10))
        bench.report(first, .settled("xxh3:01"))
        #expect(self.rates(second, bench) == [5000, 10_000])
    }

    // MARK: The receiver's window

    /// The sender is two seconds ahead at most, and 256 bytes at least.
    @Test(
        arguments: [
            (1024, 2048), (1 << 20, 2 << 20), (2 << 20, 4 << 20), (1 << 40, 4 << 20), (EarshotLimits.smallestShare, 256),
        ] as [(UInt64, UInt64)]) func theWindowOfALimitedTransfer(rate: UInt64, window: UInt64) throws
    {
        var bench = try TransferBench { $0.receiveLimit = rate }
        let size = EarshotLimits.dataThreshold - 1
        let id = self.receiving(&bench, size: size)
        #expect(self.accepted(&bench).map(\.limit) == [min(size, window)])
        #expect(self.rates(id, bench) == [rate])
        #expect(EarshotLimits.pacedWindow == .seconds(2) && EarshotLimits.resourceWindow == 4 << 20)
    }

    @Test(arguments: [(EarshotLimits.receiveDataRate, true), (EarshotLimits.receiveDataRate - 1, false)])
    func receiveDataRate(rate: UInt64, usesData: Bool) throws {
        var bench = try TransferBench { $0.receiveLimit = rate }
        _ = self.receiving(&bench, size: EarshotLimits.dataThreshold)
        let accept = try #require(self.accepted(&bench).first)
        #expect((accept.limit == accept.offset) == usesData)
    }

    /// A second transfer halves the rate: the first one leaves its data connection, and continues over the control connection.
    @Test func aDataConnectionThatIsTooSlow() throws {
        var bench = try TransferBench { $0.receiveLimit = EarshotLimits.receiveDataRate }
        let size = EarshotLimits.dataThreshold * 2
        let id = self.receiving(&bench, size: size)
        let dial = try #require(
            bench.bench.effects.compactMap { effect -> UInt64? in
                switch effect {
                case .dataPath(_, .expect(_, _, _, let attempt)), .dataPath(_, .dial(_, _, _, let attempt)): attempt
                default: nil
                }
            }.last)
        bench.bench.handle(.dataPath(TransferID(id), .attached(attempt: dial)))
        #expect(bench.orders(id).last == .receiveData)
        #expect(!bench.bench.effects.contains(.dataPath(TransferID(id), .close)))
        _ = bench.sent()
        _ = self.receiving(&bench, size: 10)
        #expect(bench.bench.effects.contains(.dataPath(TransferID(id), .close)))
        _ = bench.sent()
        bench.report(id, .dataEnded(at: 1000))
        #expect(self.accepted(&bench).map { [$0.offset, $0.limit] } == [[1000, 1000 + EarshotLimits.receiveDataRate]])
    }
}
