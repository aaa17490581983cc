import EarshotWire
import Testing

@testable import EarshotCore

@Suite struct PeerTableTests {
    private struct Row: PeerTableRow {
        struct Facets: OptionSet, Sendable, Hashable {
            let rawValue: UInt16
            static let open = Facets(rawValue: 1 << 0)
            static let busy = Facets(rawValue: 1 << 1)
            static let finished = Facets(rawValue: 1 << 2)
        }
        static var finished: Facets { .finished }
        var peerID: PeerID
        var facets: Facets
    }

    private typealias Table = PeerTable<Int, Row>

    private static func peer(_ number: UInt8) -> PeerID { PeerID(subjectPublicKeyInfo: [number]) }
    private let bob = Self.peer(1)
    private let carol = Self.peer(2)

    @Test func rowsAreCountedByPeerAndKind() {
        var table = Table()
        table[1] = Row(peerID: self.bob, facets: .open)
        table[2] = Row(peerID: self.carol, facets: [.open, .busy])
        table[3] = Row(peerID: self.bob, facets: [.open, .busy])
        #expect(table.count(.open) == 3 && table.count(.busy) == 2 && table.count(.finished) == 0)
        #expect(table.count(of: self.bob, .open) == 2 && table.count(of: self.bob, .busy) == 1)
        #expect(table.ids(of: self.bob, .open) == [1, 3] && table.ids(.open) == [1, 2, 3])
        #expect(table.count(of: self.carol, .open) == 1 && table.count(of: self.carol, .busy) == 1)
        table[3]?.facets = .finished
        #expect(table.count(of: self.bob, .open) == 1 && table.count(.busy) == 1 && table.count(.finished) == 1)
        #expect(table.count(of: self.bob, .busy) == 0 && table.count(of: self.carol, .busy) == 1)
        table[1] = nil
        #expect(table.count(of: self.bob, .open) == 0 && table.ids(of: self.bob, .open) == [] && table.values.count == 2)
        table[2] = nil
        #expect(table[2] == nil && table.count(of: self.carol, .open) == 0 && table.count(.open) == 0)
    }

    @Test func oneThatIsReplacedKeepsItsPlace() {
        var table = Table()
        for id in 1...3 { table[id] = Row(peerID: self.bob, facets: .open) }
        table[1] = Row(peerID: self.carol, facets: [.open, .busy])
        #expect(table.values.map(\.peerID) == [self.carol, self.bob, self.bob])
        #expect(table.ids(.open) == [1, 2, 3] && table.count(of: self.bob, .open) == 2 && table.count(of: self.carol, .open) == 1)
    }

    /// Compares the counts with those of a plain dictionary after random changes.
    @Test(arguments: 0..<8 as Range<UInt64>) func countsAreWhatIsThere(_ seed: UInt64) {
        var table = Table()
        var plain: [Int: Row] = [:]
        var state = seed &+ 1
        func dice(_ below: UInt64) -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return (state >> 33) % below
        }
        for _ in 0..<4000 {
            let id = Int(dice(40))
            let row = Row(peerID: Self.peer(UInt8(dice(3))), facets: Row.Facets(rawValue: UInt16(dice(8))))
            if dice(4) == 0 {
                table[id] = nil
                plain[id] = nil
            } else {
                table[id] = row
                plain[id] = row
            }
            if let old = table.surplus(beyond: 12, endedBy: row.peerID) {
                #expect(plain[old]?.facets.contains(.finished) == true)
                table[old] = nil
                plain[old] = nil
            }
        }
        #expect(table.values.count == plain.count)
        for facet in [Row.Facets.open, .busy, .finished] {
            #expect(table.count(facet) == plain.values.count { $0.facets.contains(facet) })
            #expect(Set(table.ids(facet)) == Set(plain.filter { $0.value.facets.contains(facet) }.keys))
            for number in 0..<3 as Range<UInt8> {
                #expect(
                    table.count(of: Self.peer(number), facet)
                        == plain.values.count { $0.facets.contains(facet) && $0.peerID == Self.peer(number) })
            }
        }
    }

    // MARK: Finished rows

    @Test func theOldestGoesAtTheLimit() {
        var table = Table()
        for id in 0..<10 { table[id] = Row(peerID: self.bob, facets: .finished) }
        #expect(table.surplus(beyond: 10, endedBy: self.bob) == nil)
        table[10] = Row(peerID: self.bob, facets: .finished)
        #expect(table.surplus(beyond: 10, endedBy: self.bob) == 0)
        table[0] = nil
        #expect(table.surplus(beyond: 10, endedBy: self.bob) == nil)
        // A row that starts again, and ends again, is the youngest.
        table[1]?.facets = .open
        table[1]?.facets = .finished
        table[11] = Row(peerID: self.bob, facets: .finished)
        #expect(table.surplus(beyond: 10, endedBy: self.bob) == 2)
    }

    @Test func whoeverHasMostPays() {
        var table = Table()
        for id in 0..<4 { table[id] = Row(peerID: self.carol, facets: .finished) }
        for id in 100..<20_100 {
            table[id] = Row(peerID: self.bob, facets: .finished)
            while let old = table.surplus(beyond: 10, endedBy: self.bob) { table[old] = nil }
        }
        #expect(table.count(of: self.carol, .finished) == 4, "another one's rows stay")
        #expect(table.ids(of: self.bob, .finished) == Array(20_094..<20_100))
        // A new peer gets a share too.
        for id in 4..<9 {
            table[id] = Row(peerID: self.carol, facets: .finished)
            while let old = table.surplus(beyond: 10, endedBy: self.carol) { table[old] = nil }
        }
        #expect(table.count(of: self.carol, .finished) >= 5)
    }
}
