import Foundation
import Testing

@testable import EarshotCLI

/// Rulesets in the form of `nft -j list ruleset`, reduced to the relevant parts.
@Suite struct PacketFilterTests {
    /// A ruleset with an input chain with the policy, other chains, and rules of (chain, expressions).
    private static func rules(policy: String = "accept", chains: [String] = [], _ rules: [(String, String)], extra: String = "") throws
        -> NftRuleset
    {
        let base =
            #"{"metainfo":{"version":"1.0.6"}},{"table":{"family":"inet","name":"t","handle":1}},{"chain":{"family":"inet","table":"t","#
            + #""name":"input","handle":1,"type":"filter","hook":"input","prio":0,"policy":"\#(policy)"}}"#
        let more = chains.map { #",{"chain":{"family":"inet","table":"t","name":"\#($0)","handle":2}}"# }.joined()
        let lines = rules.map { #",{"rule":{"family":"inet","table":"t","chain":"\#($0.0)","handle":3,"expr":[\#($0.1)]}}"# }.joined()
        return try NftRuleset(json: Array(#"{"nftables":[\#(base)\#(more)\#(extra)\#(lines)]}"#.utf8))
    }

    private static func port(_ transport: String, _ right: String, _ op: String = "==") -> String {
        #"{"match":{"op":"\#(op)","left":{"payload":{"protocol":"\#(transport)","field":"dport"}},"right":\#(right)}}"#
    }

    private static let established =
        #"{"match":{"op":"in","left":{"ct":{"key":"state"}},"right":["established","related"]}},{"accept":null}"#
    private static let loopback = #"{"match":{"op":"==","left":{"meta":{"key":"iifname"}},"right":"lo"}},{"accept":null}"#

    private static func verdict(_ rules: NftRuleset, tcp: Bool = false) -> PacketFilter.Verdict {
        PacketFilter(rules: rules).verdict(on: tcp ? .connection(port: 47110, interfaces: ["eth0"]) : .mDNS(interfaces: ["eth0"]))
    }

    private static func place(_ isPolicy: Bool, chain: String = "input") -> PacketFilter.Place {
        PacketFilter.Place(family: "inet", table: "t", chain: chain, isPolicy: isPolicy)
    }

    @Test func noRulesLetAllIn() throws {
        #expect(Self.verdict(try NftRuleset(json: Array(#"{"nftables":[{"metainfo":{}}]}"#.utf8))) == .accepted)
        #expect(Self.verdict(try Self.rules([])) == .accepted)
    }

    @Test func anExplicitDrop() throws {
        let rules = try Self.rules([("input", Self.port("udp", "5353") + #",{"counter":{"packets":0,"bytes":0}},{"drop":null}"#)])
        #expect(Self.verdict(rules) == .dropped(Self.place(false)))
        #expect(Self.verdict(rules, tcp: true) == .accepted)
    }

    @Test(arguments: [#"{"set":[22,47110]}"#, #"{"range":[47000,48000]}"#, #"{"set":[{"range":[47000,48000]}]}"#, "47110"])
    func setsAndRanges(right: String) throws {
        let rules = try Self.rules(policy: "drop", [("input", Self.port("tcp", right) + #",{"accept":null}"#)])
        #expect(Self.verdict(rules, tcp: true) == .accepted)
        #expect(Self.verdict(rules) == .dropped(Self.place(true)))
    }

    @Test func aPolicyThatDropsWithTheUsualExceptions() throws {
        let usual = [("input", Self.established), ("input", Self.loopback), ("input", Self.port("tcp", "22") + #",{"accept":null}"#)]
        #expect(Self.verdict(try Self.rules(policy: "drop", usual)) == .dropped(Self.place(true)))
        let open = usual + [("input", Self.port("udp", "5353") + #",{"accept":null}"#)]
        #expect(Self.verdict(try Self.rules(policy: "drop", open)) == .accepted)
    }

    @Test func aConditionThatNobodyKnows() throws {
        let subnet =
            #"{"match":{"op":"==","left":{"payload":{"protocol":"ip","field":"saddr"}},"right":{"prefix":{"addr":"10.0.0.0","len":8}}}}"#
        let open = try Self.rules(policy: "drop", [("input", subnet + "," + Self.port("udp", "5353") + #",{"accept":null}"#)])
        #expect(Self.verdict(open) == .depends(Self.place(true)))
        let closed = try Self.rules([("input", subnet + "," + Self.port("udp", "5353") + #",{"drop":null}"#)])
        #expect(Self.verdict(closed) == .accepted)
        let extensionRule = try Self.rules(policy: "drop", [("input", #"{"xt":{"type":"match","name":"addrtype"}},{"accept":null}"#)])
        #expect(Self.verdict(extensionRule) == .depends(Self.place(true)))
    }

    @Test func multicastByAddressAndKind() throws {
        let address =
            #"{"match":{"op":"==","left":{"payload":{"protocol":"ip","field":"daddr"}},"right":{"prefix":{"addr":"224.0.0.0","len":4}}}},{"accept":null}"#
        #expect(Self.verdict(try Self.rules(policy: "drop", [("input", address)])) == .accepted)
        let kind = #"{"match":{"op":"==","left":{"meta":{"key":"pkttype"}},"right":"multicast"}},{"drop":null}"#
        #expect(Self.verdict(try Self.rules([("input", kind)])) == .dropped(Self.place(false)))
        #expect(Self.verdict(try Self.rules([("input", kind)]), tcp: true) == .accepted)
    }

    @Test func jumpsReturnsAndMaps() throws {
        let jump = try Self.rules(
            policy: "drop", chains: ["services"],
            [
                ("input", #"{"jump":{"target":"services"}}"#), ("services", Self.port("tcp", "22") + #",{"return":null}"#),
                ("services", Self.port("udp", "5353") + #",{"accept":null}"#), ("services", #"{"return":null}"#),
            ])
        #expect(Self.verdict(jump) == .accepted)
        #expect(Self.verdict(jump, tcp: true) == .dropped(Self.place(true)))
        let map = try Self.rules(
            policy: "drop", chains: ["lan"],
            [
                (
                    "input",
                    #"{"vmap":{"key":{"meta":{"key":"iifname"}},"data":{"set":[["lo",{"accept":null}],["eth0",{"jump":{"target":"lan"}}]]}}}"#
                ),
                ("lan", Self.port("tcp", "47110") + #",{"reject":{"type":"icmpx","expr":"admin-prohibited"}}"#),
                ("lan", #"{"accept":null}"#),
            ])
        #expect(Self.verdict(map) == .accepted)
        #expect(Self.verdict(map, tcp: true) == .dropped(Self.place(false, chain: "lan")))
    }

    @Test func aNamedSetAllowsItsPorts() throws {
        let set =
            #",{"set":{"family":"inet","name":"open","table":"t","type":"inet_service","handle":9,"elem":[5353,{"elem":{"val":47110}}]}}"#
        let rules = try Self.rules(policy: "drop", [("input", Self.port("th", #""@open""#) + #",{"accept":null}"#)], extra: set)
        #expect(Self.verdict(rules) == .accepted)
        #expect(Self.verdict(rules, tcp: true) == .accepted)
    }

    private static func verdict6(_ rules: NftRuleset, tcp: Bool = false) -> PacketFilter.Verdict {
        PacketFilter(rules: rules).verdict(
            on: tcp ? .connection(over: .ipv6, port: 47110, interfaces: ["eth0"]) : .mDNS(over: .ipv6, interfaces: ["eth0"]))
    }

    /// Rules of an `ip6` table, and conditions on either header, apply only to packets of their family.
    @Test func packetsOverIPv6() throws {
        let table =
            #","table":"f","name":"INPUT","handle":1,"type":"filter","hook":"input","prio":0,"policy":"drop"}}"#
        let six = try NftRuleset(json: Array((#"{"nftables":[{"chain":{"family":"ip6""# + table + "]}").utf8))
        let place = PacketFilter.Place(family: "ip6", table: "f", chain: "INPUT", isPolicy: true)
        #expect(Self.verdict(six) == .accepted && Self.verdict(six, tcp: true) == .accepted)
        #expect(Self.verdict6(six) == .dropped(place) && Self.verdict6(six, tcp: true) == .dropped(place))
        let four = try NftRuleset(json: Array((#"{"nftables":[{"chain":{"family":"ip""# + table + "]}").utf8))
        #expect(Self.verdict6(four) == .accepted)
        let both = try Self.rules(policy: "drop", [])
        #expect(Self.verdict(both) == Self.verdict6(both) && Self.verdict6(both) == .dropped(Self.place(true)))

        func header(_ name: String, _ field: String, _ right: String) throws -> NftRuleset {
            let match = #"{"match":{"op":"==","left":{"payload":{"protocol":"\#(name)","field":"\#(field)"}},"right":\#(right)}}"#
            return try Self.rules([("input", match + #",{"drop":null}"#)])
        }
        let next = try header("ip6", "nexthdr", #""udp""#)
        #expect(Self.verdict6(next) == .dropped(Self.place(false)) && Self.verdict6(next, tcp: true) == .accepted)
        #expect(Self.verdict(next) == .accepted)
        let old = try header("ip", "protocol", #""udp""#)
        #expect(Self.verdict(old) == .dropped(Self.place(false)) && Self.verdict6(old) == .accepted)
        for (address, length, isDropped) in [
            ("ff00::", 8, true), ("ff02::fb", 128, true), ("ff02::fa", 127, true), ("ff02::fa", 128, false), ("fe80::", 10, false),
            ("::", 0, true), ("224.0.0.0", 4, nil),
        ] as [(String, Int, Bool?)] {
            let rules = try header("ip6", "daddr", #"{"prefix":{"addr":"\#(address)","len":\#(length)}}"#)
            // A condition that cannot be compared does not count against the packet.
            #expect(Self.verdict6(rules) == (isDropped == true ? .dropped(Self.place(false)) : .accepted), "\(address)/\(length)")
        }
        for (key, word) in [("nfproto", "ipv6"), ("protocol", "ip6")] {
            let rules = try Self.rules([
                ("input", #"{"match":{"op":"==","left":{"meta":{"key":"\#(key)"}},"right":"\#(word)"}},{"drop":null}"#)
            ])
            #expect(Self.verdict6(rules) == .dropped(Self.place(false)) && Self.verdict(rules) == .accepted)
        }
    }

    @Test func aLoopOfJumpsEnds() throws {
        let rules = try Self.rules(chains: ["a"], [("input", #"{"jump":{"target":"a"}}"#), ("a", #"{"jump":{"target":"a"}}"#)])
        #expect(Self.verdict(rules) == .accepted)
    }

    @Test(arguments: ["", "{", "[]", #"{"nftables":{}}"#])
    func garbageIsAnError(json: String) {
        #expect(throws: (any Error).self) { try NftRuleset(json: Array(json.utf8)) }
    }

    @Test(arguments: [
        #"{"nftables":[7,null,{"rule":{}},{"chain":{"family":"inet"}},{"rule":{"family":"inet","table":"x","chain":"y","expr":[]}}]}"#
    ])
    func oddPartsAreLeftOut(json: String) throws {
        #expect(Self.verdict(try NftRuleset(json: Array(json.utf8))) == .accepted)
    }
}
