import EarshotWire
import Testing

@testable import EarshotCore

@Suite struct PeerNamingTests {
    /// The relation of a peer to this machine.
    enum Kind: CaseIterable {
        case trusted, trustedConnected, formerlyConnected, knownConnected, strangerConnected, strangerProven, stranger, strangerConfigured
        case blocked, blockedConnected

        var isKnown: Bool { ![.strangerConnected, .strangerProven, .stranger, .strangerConfigured].contains(self) }
        /// Whether a prefix of its id may name it.
        var hasSureID: Bool { self != .stranger }
        var isBlocked: Bool { [.blocked, .blockedConnected].contains(self) }

        func entry(_ number: UInt8, _ name: String = "bob") -> PeerNaming.Entry {
            let isConnected = [.trustedConnected, .knownConnected, .strangerConnected, .blockedConnected].contains(self)
            return PeerNaming.Entry(
                id: peerID(number), name: name, isConnected: isConnected, isProven: isConnected || self == .strangerProven,
                isKnown: self.isKnown, hasSureID: self.hasSureID,
                trust: [.trusted, .trustedConnected].contains(self) ? .trusted : self.isBlocked ? .blocked : .unknown)
        }
    }

    private func ids(_ name: String, _ entries: [PeerNaming.Entry]) -> [PeerID] {
        PeerNaming.candidates(for: name, among: entries).map(\.id)
    }

    private static let cases: [(kinds: [Kind], chosen: [Int])] = [
        ([], []), ([.stranger], [0]), ([.blocked], [0]),
        // A stranger bob is never taken for the absent trusted bob, whatever the stranger has done.
        ([.trusted, .stranger], [0]), ([.trusted, .strangerProven], [0]), ([.trusted, .strangerConnected], [0]),
        ([.strangerConnected, .trusted, .stranger], [1]),
        // Nor for a peer that was once in a session.
        ([.formerlyConnected, .stranger], [0]), ([.formerlyConnected, .strangerConnected], [0]),
        // Two known peers are ambiguous, whether connected or not: a member that takes an absent peer's name gets nothing meant for it.
        ([.trusted, .trustedConnected], [0, 1]), ([.formerlyConnected, .knownConnected], [0, 1]),
        ([.trustedConnected, .formerlyConnected], [0, 1]), ([.trusted, .knownConnected, .strangerConnected], [0, 1]),
        // Connected strangers come before proven ones, and those before others.
        ([.stranger, .strangerProven, .strangerConnected], [2]), ([.stranger, .strangerProven], [1]),
        // The user must choose among several peers of the best kind.
        ([.stranger, .stranger], [0, 1]), ([.trusted, .trusted], [0, 1]), ([.knownConnected, .trustedConnected], [0, 1]),
        ([.trusted, .formerlyConnected], [0, 1]), ([.strangerConnected, .strangerConnected, .stranger], [0, 1]),
        ([.knownConnected, .trusted], [0, 1]), ([.trusted, .knownConnected, .stranger], [0, 1]),
        // Blocked peers match only if no other peer does.
        ([.blocked, .stranger], [1]), ([.blockedConnected, .trusted], [1]), ([.blockedConnected, .stranger], [1]),
        ([.blocked, .blockedConnected], [0, 1]),
    ]

    /// A member whose name is canonically equivalent to an absent peer's gets nothing meant for that peer.
    @Test func equivalentNamesAreAmbiguous() {
        let entries = [Kind.trusted.entry(1, "caf\u{E9}"), Kind.knownConnected.entry(2, "cafe\u{301}")]
        for name in ["caf\u{E9}", "cafe\u{301}"] { #expect(self.ids(name, entries) == [peerID(1), peerID(2)]) }
    }

    @Test(arguments: Self.cases.indices) func whomANameMeans(index: Int) {
        let (kinds, chosen) = Self.cases[index]
        let entries = kinds.enumerated().map { $1.entry(UInt8($0 + 1)) }
        let others = Kind.allCases.enumerated().map { $1.entry(UInt8($0 + 100), "carol") }
        #expect(self.ids("bob", entries + others) == chosen.map { peerID(UInt8($0 + 1)) }, "\(kinds)")
    }

    @Test(arguments: [
        "bob", "two words", " leading", "🦊", "é", "\u{202E}bob", "b\u{200B}ob", "-n", "a/b?c#d%20", "ABCDEFGH",
        String(repeating: "x", count: 63),
    ]) func anyNameNamesItsPeer(name: String) {
        let others = ["bob ", "bo", "", "Bob", "two  words", "e", "abcdefgh2"].enumerated().map {
            Kind.stranger.entry(UInt8($0 + 2), $1)
        }
        #expect(self.ids(name, [Kind.stranger.entry(1, name)] + others) == [peerID(1)])
    }

    /// Two normalisations of a name are one name: a look-alike cannot bypass the ranking, as it could by its bytes.
    @Test func aNameIsWhatIsSeen() {
        #expect(self.ids("e\u{301}va", [Kind.trusted.entry(1, "\u{E9}va"), Kind.stranger.entry(2, "e\u{301}va")]) == [peerID(1)])
    }

    @Test(arguments: ["Bob", "bo", "bobb", "", " bob"]) func anotherNameIsNobody(name: String) {
        #expect(self.ids(name, [Kind.trusted.entry(1)]) == [])
    }

    @Test func aPrefixHasAtLeast8Characters() {
        let text = peerID(1).description
        let both = [Kind.strangerProven.entry(1), Kind.strangerProven.entry(2)]
        #expect(self.ids(String(text.prefix(PeerID.shortestPrefix)), both) == [peerID(1)])
        #expect(self.ids(String(text.prefix(PeerID.shortestPrefix - 1)), both) == [])
        #expect(self.ids(String(text.prefix(PeerID.shortestPrefix)).lowercased(), both) == [peerID(1)])
        #expect(self.ids(text, both) == [peerID(1)])
        #expect(self.ids(text + "A", both) == [])
    }

    /// For a stranger whose key was never proven, the id is only advertised, and may begin with any word.
    @Test(arguments: Kind.allCases) func aPrefixMeansNoIDThatIsOnlyAdvertised(kind: Kind) {
        let prefix = String(peerID(1).description.prefix(11))
        #expect(self.ids(prefix, [kind.entry(1), Kind.trusted.entry(2)]) == (kind.hasSureID ? [peerID(1)] : []))
        let advertised = PeerNaming.onlyAdvertised(prefix, among: [kind.entry(1), Kind.trusted.entry(2)])
        #expect(advertised.map(\.id) == (kind.hasSureID ? [] : [peerID(1)]))
    }

    /// The name of a known peer takes precedence over ids: here it equals the beginning of an id.
    @Test(arguments: Kind.allCases.filter { $0.isKnown && !$0.isBlocked }) func aKnownNameGoesBeforeAPrefix(known: Kind) {
        let prefix = String(peerID(1).description.prefix(8))
        for kind in Kind.allCases where !kind.isKnown || kind.isBlocked {
            #expect(self.ids(prefix, [kind.entry(1), known.entry(2, prefix)]) == [peerID(2)], "\(kind)")
            #expect(self.ids(prefix.lowercased(), [kind.entry(1), known.entry(2, prefix.lowercased())]) == [peerID(2)], "\(kind)")
        }
        // If a known peer's name equals the beginning of another's id, the name is ambiguous, so that nothing silently reaches the wrong
        // peer.
        for kind in Kind.allCases where kind.isKnown && !kind.isBlocked {
            #expect(self.ids(prefix, [kind.entry(1), known.entry(2, prefix)]) == [peerID(2), peerID(1)], "\(kind)")
        }
        #expect(self.ids(prefix, [known.entry(1, prefix)]) == [peerID(1)])
    }

    /// A stranger gains nothing by a name that equals the beginning of another's id.
    @Test(arguments: Kind.allCases.filter(\.hasSureID)) func aPrefixGoesBeforeAStrangersName(kind: Kind) {
        let prefix = String(peerID(1).description.prefix(8))
        for stranger in Kind.allCases where !stranger.isKnown {
            #expect(self.ids(prefix, [kind.entry(1), stranger.entry(2, prefix)]) == [peerID(1)], "\(stranger)")
            // Without such an id it is an ordinary name.
            #expect(self.ids(prefix, [stranger.entry(2, prefix)]) == [peerID(2)], "\(stranger)")
        }
    }

    @Test func onlyAsciiLettersHaveACase() {
        // By Unicode's rules, ſ and ı would be S and I.
        for (letter, other) in [("S", "ſ"), ("I", "ı")] {
            guard let id = (1...255).lazy.map({ peerID($0) }).first(where: { $0.description.prefix(8).contains(letter) }) else { continue }
            let entry = PeerNaming.Entry(
                id: id, name: "x", isConnected: false, isProven: true, isKnown: false, hasSureID: true, trust: .unknown)
            #expect(self.ids(String(id.description.prefix(8)).replacing(letter, with: other), [entry]) == [])
        }
    }
}
