import EarshotSafety
import Testing

@testable import EarshotCore
@testable import EarshotWire

/// Files are offered with their attributes to peers that support them, and received with the attributes of the last offer.
@Suite struct FileAttributesTests {
    private static let attributes = FileAttributes(isExecutable: true, seconds: 5, nanoseconds: 6)

    private func offers(_ frames: [Frame]) -> [ResourceOffer] {
        frames.compactMap { if case .resource(.offer(let offer)) = $0 { offer } else { nil } }
    }

    private func told(_ bench: TransferBench, _ id: ResourceID) -> [FileAttributes?] {
        bench.orders(id).compactMap { if case .resume(_, _, let attributes) = $0 { .some(attributes) } else { nil } }
    }

    @Test(arguments: [true, false]) func anOfferHasThemWhereThePeerKnowsThem(knows: Bool) throws {
        var bench = try TransferBench()
        bench.lose()
        try bench.connect(extensions: knows ? [.fileAttributes] : [])
        let (path, body) = (bench.freshID(), bench.freshID())
        bench.bench.call(.resource(.send([bench.draft(path)])))
        bench.report(path, .opened(OpenedSource(size: 10, stamp: "1", attributes: Self.attributes)))
        bench.bench.call(.resource(.sendBody(bench.draft(body, source: .body, attributes: Self.attributes))))
        bench.report(body, .opened(nil))
        #expect(self.offers(bench.sent()).map(\.attributes) == [knows ? Self.attributes : nil, knows ? Self.attributes : nil])
    }

    /// The spool directory that contains a body's tree has attributes of its own, which are not the directory's.
    @Test func aDirectoryHasNone() throws {
        var bench = try TransferBench()
        bench.lose()
        try bench.connect(extensions: [.fileAttributes])
        let id = bench.freshID()
        bench.bench.call(.resource(.send([bench.draft(id, kind: .directory, source: .spool)])))
        bench.report(id, .opened(OpenedSource(size: 10, stamp: "1", attributes: Self.attributes)))
        #expect(self.offers(bench.sent()).map(\.attributes) == [nil])
    }

    @Test func theLastOfferCounts() throws {
        var bench = try TransferBench()
        let id = bench.freshID()
        func offer(_ attributes: FileAttributes?) -> Frame {
            .resource(.offer(ResourceOffer(session: bench.session, id: id, kind: .file, size: 10, name: "x", attributes: attributes)))
        }
        bench.say(offer(nil))
        #expect(self.told(bench, id) == [nil])
        bench.lose()
        bench.report(id, .stopped)
        try bench.connect(extensions: [.fileAttributes])
        bench.say(offer(Self.attributes))
        #expect(self.told(bench, id) == [nil, Self.attributes])
    }
}
