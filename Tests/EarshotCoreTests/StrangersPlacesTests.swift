import EarshotWire
import Testing

@testable import EarshotCore

/// A class around the places, so that an expectation may change them.
private final class Held {
    private var places: StrangersPlaces
    init(_ places: StrangersPlaces) { self.places = places }
    var count: Int { self.places.count }
    func contains(_ peer: PeerID) -> Bool { self.places.contains(peer) }
    func admit(_ peer: PeerID, from origin: [UInt8]) -> StrangersPlaces.Admission { self.places.admit(peer, from: origin) }
    func release(_ peer: PeerID) { self.places.release(peer) }
    func left(_ peer: PeerID) { self.places.left(peer) }
    func returned(_ peer: PeerID) { self.places.returned(peer) }
}

/// The places of strangers that wait for a user's decision, and their eviction.
@Suite struct StrangersPlacesTests {
    private func origin(_ number: Int) -> [UInt8] { [10, 0, 0, UInt8(number)] }

    private func places(_ limit: Int = 6, perAddress: Int = 3) -> Held { Held(StrangersPlaces(limit: limit, perAddress: perAddress)) }

    @Test func aPeerHasOnePlace() {
        let places = self.places()
        #expect(places.admit(peerID(1), from: self.origin(1)) == .admitted)
        #expect(places.admit(peerID(1), from: self.origin(1)) == .busy)
        #expect(places.admit(peerID(1), from: self.origin(2)) == .busy)
        #expect(places.count == 1)
        places.release(peerID(1))
        #expect(places.count == 0)
        #expect(places.admit(peerID(1), from: self.origin(2)) == .admitted)
    }

    @Test func anAddressHasFew() {
        let places = self.places()
        for number in 1...3 { #expect(places.admit(peerID(UInt8(number)), from: self.origin(1)) == .admitted) }
        #expect(places.admit(peerID(4), from: self.origin(1)) == .busy)
        #expect(places.admit(peerID(4), from: self.origin(2)) == .admitted)
        // A place is evicted for its own address only if its peer has gone; the places of other addresses do not matter.
        places.left(peerID(4))
        #expect(places.admit(peerID(5), from: self.origin(1)) == .busy)
        places.left(peerID(3))
        places.left(peerID(2))
        #expect(places.admit(peerID(5), from: self.origin(1)) == .replaced(peerID(2), hadGone: true))
        #expect(!places.contains(peerID(2)) && places.contains(peerID(3)) && places.contains(peerID(5)))
        #expect(places.count == 4)
    }

    @Test func theOldestThatHasGoneGivesWayFirst() {
        let places = self.places()
        for number in 1...6 { #expect(places.admit(peerID(UInt8(number)), from: self.origin((number + 1) / 2)) == .admitted) }
        places.left(peerID(5))
        places.left(peerID(2))
        places.left(peerID(1))
        places.returned(peerID(1))
        #expect(places.admit(peerID(7), from: self.origin(9)) == .replaced(peerID(2), hadGone: true))
        #expect(places.admit(peerID(8), from: self.origin(9)) == .replaced(peerID(5), hadGone: true))
        #expect(places.count == 6)
    }

    @Test func thenTheOldestOfWhicheverAddressHoldsMost() {
        let places = self.places()
        for (number, address) in [1, 2, 2, 2, 3, 3].enumerated() {
            #expect(places.admit(peerID(UInt8(number)), from: self.origin(address)) == .admitted)
        }
        #expect(places.admit(peerID(10), from: self.origin(4)) == .replaced(peerID(1), hadGone: false))
        // Addresses 2 and 3 now hold two places each: the one with the oldest place loses it.
        #expect(places.admit(peerID(11), from: self.origin(5)) == .replaced(peerID(2), hadGone: false))
        // Only address 3 holds two places.
        #expect(places.admit(peerID(12), from: self.origin(6)) == .replaced(peerID(4), hadGone: false))
        // One place each: no address holds more than the newcomer's would.
        #expect(places.admit(peerID(13), from: self.origin(7)) == .busy)
        #expect(places.admit(peerID(13), from: self.origin(1)) == .busy)
        places.release(peerID(12))
        #expect(places.admit(peerID(13), from: self.origin(1)) == .admitted)
    }

    /// Among the addresses with the most places, the newcomer's own loses one: other addresses do not lose for it.
    @Test func itsOwnAddressGivesWayFirst() {
        let places = self.places(4)
        for (number, address) in [1, 1, 2, 2].enumerated() {
            #expect(places.admit(peerID(UInt8(number)), from: self.origin(address)) == .admitted)
        }
        #expect(places.admit(peerID(10), from: self.origin(2)) == .replaced(peerID(2), hadGone: false))
        #expect(places.admit(peerID(11), from: self.origin(1)) == .replaced(peerID(0), hadGone: false))
    }

    /// In any order, the limits hold in total and per address, and a newcomer from a new address always finds a place while another address
    /// holds two.
    @Test(arguments: 0..<8) func inAnyOrder(seed: UInt64) {
        var random = SystemRandomNumberGenerator.seeded(seed)
        let places = self.places()
        var held: [UInt8: Int] = [:]
        for _ in 0..<2_000 {
            let peer = UInt8.random(in: 0..<40, using: &random)
            switch UInt8.random(in: 0..<6, using: &random) {
            case 0: places.left(peerID(peer))
            case 1: places.returned(peerID(peer))
            case 2:
                places.release(peerID(peer))
                held[peer] = nil
            default:
                let address = Int.random(in: 0..<5, using: &random)
                let before = held
                let own = before.values.count { $0 == address }
                switch places.admit(peerID(peer), from: self.origin(address)) {
                case .admitted:
                    #expect(before[peer] == nil && before.count < 6 && own < 3)
                    held[peer] = address
                case .replaced(let other, _):
                    let former = before.first { peerID($0.key) == other }
                    #expect(former != nil && before[peer] == nil && (before.count == 6 || (own == 3 && former?.value == address)))
                    if let former { held[former.key] = nil }
                    held[peer] = address
                case .busy:
                    let most = Dictionary(grouping: before.values) { $0 }.values.map(\.count).max() ?? 0
                    #expect(before[peer] != nil || own == 3 || most == 1)
                }
            }
            #expect(places.count == held.count && held.count <= 6)
            #expect(Dictionary(grouping: held.values) { $0 }.values.allSatisfy { $0.count <= 3 })
        }
    }
}

extension SystemRandomNumberGenerator {
    /// Splitmix64, which gives the same numbers for the same seed.
    fileprivate struct Seeded: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            self.state &+= 0x9E37_79B9_7F4A_7C15
            var z = self.state
            z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
            return z ^ (z >> 31)
        }
    }

    fileprivate static func seeded(_ seed: UInt64) -> Seeded { Seeded(state: seed) }
}
