import EarshotWire
import OrderedCollections
import Testing

@testable import EarshotCore

/// Names that a user of this machine gives to peers.
@Suite struct AliasTests {
    private let alice = peerID(1)
    private let mallory = peerID(2)

    @Test func anAliasGoesBeforeThePeersOwnName() throws {
        var (bob, link, _) = try CoreBench.inSession(with: self.alice)
        let own = try bob.peer(self.alice).name
        let named = try #require(bob.call(.setAlias(try DisplayName("laptop"), self.alice.description))?.peer)
        #expect(named.name == "laptop" && named.displayName == own)
        #expect(bob.core.sessions.first?.members.first?.name == "laptop")
        #expect(try bob.core.resolve("laptop") == self.alice && bob.core.resolve(own) == self.alice)
        // The peer's own name is still learned, and kept beside the alias.
        bob.lose(link)
        try bob.prove(self.alice, name: "renamed")
        for bench in [bob, bob.restarted()] {
            #expect(try bench.peer(self.alice).name == "laptop" && bench.peer(self.alice).displayName == "renamed")
            #expect(try bench.core.resolve("laptop") == self.alice)
        }
        let removed = try #require(bob.call(.setAlias(nil, "laptop"))?.peer)
        #expect(removed.name == "renamed" && removed.displayName == nil)
        #expect(bob.peersOnDisk[self.alice]?.alias == nil && bob.holds.isEmpty)
        #expect(throws: EarshotError.self) { try bob.core.resolve("laptop") }
    }

    /// A peer that takes the alias as its own name gets nothing that is meant for the other, whatever it has done before.
    @Test(arguments: [false, true]) func noPeerCanTakeAnAlias(isKnown: Bool) throws {
        var (bob, _, _) = try CoreBench.inSession(with: self.alice)
        bob.call(.setAlias(try DisplayName("laptop"), self.alice.description))
        let theirs = try bob.prove(self.mallory, name: "laptop")
        if isKnown { _ = try bob.join(on: theirs) }
        #expect(try bob.core.resolve("laptop") == self.alice)
        #expect(try bob.peer(self.alice).nameConflict == self.mallory)
    }

    @Test func aNameOfAKnownPeerIsNoAlias() throws {
        var (bob, _, _) = try CoreBench.inSession(with: self.alice)
        let own = try bob.peer(self.alice).name
        try bob.prove(self.mallory, name: "mallory")
        for name in [own, own.uppercased()] {
            #expect(bob.call(.setAlias(try DisplayName(name), self.mallory.description))?.error == .conflict)
        }
        #expect(bob.peersOnDisk[self.mallory] == nil && bob.holds.isEmpty)
        // The peer's own name may be its alias: it then stays when the peer renames itself.
        #expect(bob.call(.setAlias(try DisplayName(own), self.alice.description))?.peer?.name == own)
        let id = try DisplayName(self.alice.description)
        #expect(bob.call(.setAlias(id, self.mallory.description))?.error == .invalidParameter)
    }

    /// The name by which a key was only advertised may be another key's in a moment.
    @Test func aKeyThatIsOnlyAdvertisedNeedsItsWholeID() throws {
        var bob = CoreBench()
        try bob.see(self.alice, name: "alice")
        #expect(bob.call(.setAlias(try DisplayName("laptop"), "alice"))?.error == .invalidParameter)
        #expect(bob.peersOnDisk.isEmpty)
        #expect(bob.call(.setAlias(try DisplayName("laptop"), self.alice.description))?.peer?.displayName == "alice")
        #expect(bob.peersOnDisk[self.alice]?.isDecided == true)
        #expect(bob.call(.setAlias(nil, self.mallory.description))?.peer?.displayName == nil)
        #expect(bob.peersOnDisk[self.mallory] == nil)
    }

    /// A full disk refuses the alias: nothing has changed.
    @Test func anAliasThatIsNotOnDiskIsNone() throws {
        var (bob, _, _) = try CoreBench.inSession(with: self.alice)
        let own = try bob.peer(self.alice).name
        bob.diskError = EarshotError(.noSpace, "the disk is full")
        #expect(bob.call(.setAlias(try DisplayName("laptop"), self.alice.description))?.error != nil)
        #expect(try bob.peer(self.alice).name == own)
    }
}
