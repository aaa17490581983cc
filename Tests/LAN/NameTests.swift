import EarshotClient
import Foundation
import Testing

extension LAN {
    /// The peer that a name means when another peer takes the name.
    @Suite struct Names {
        /// Two machines started from one disk image both report that, until the other has gone.
        @Test func twoMachinesWithOneIdentity() async throws {
            try await Laboratory.run { laboratory in
                let alice = try await laboratory.daemon("alice")
                let copy = try await laboratory.daemon("alice", on: "bob")
                for daemon in [alice, copy] { #expect(try await daemon.stop() == 0) }
                try FileManager.default.removeItem(atPath: "\(copy.place)/state")
                try FileManager.default.copyItem(atPath: "\(alice.place)/state", toPath: "\(copy.place)/state")
                for daemon in [alice, copy] { try await daemon.start() }
                for (daemon, other) in [(alice, "10.77.0.2:"), (copy, "10.77.0.1:")] {
                    try await eventually("the other is seen") {
                        try await daemon.status().local?.identityCopies?.contains { $0.hasPrefix(other) } == true
                    }
                    #expect(try await daemon.earshot("status").output.contains("\nwarning       also advertised by another machine, at "))
                    let doctor = try await daemon.expect(1, "doctor")
                    #expect(doctor.output.contains("advertises the peer id of this one"), "\(doctor)")
                    #expect(try await daemon.peers().isEmpty)
                }
                #expect(try await copy.stop() == 0)
                try await eventually("the other is not seen any more") { try await alice.status().local?.identityCopies == [] }
            }
        }

        @Test func anImpostorGetsNothing() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                let id = try await bob.id()
                try await alice.expect(0, "trust", "bob")
                #expect(try await bob.stop() == 0)
                // While bob is away, mallory takes the name bob, and sends an invitation too.
                let mallory = try await laboratory.daemon(
                    "bob", on: "carol", environment: ["EARSHOT_INVITATIONS_FROM_UNKNOWN": "accept"])
                try await alice.awaitPeer(mallory)
                #expect(try await alice.decode(ControlAPI.PeerList.self, "peers").peers.filter { $0.name == "bob" }.count == 2)
                try await alice.expect(79, "send", "bob", "for bob alone", "--timeout", "1")
                let asked = try mallory.begin(["invite", try await alice.id()])
                try await alice.awaitInvitation(from: mallory)
                let refused = try await alice.expect(65, "accept", "bob")
                #expect(refused.errors.contains("no pending invitation"), "\(refused)")
                #expect(try await mallory.sessions().isEmpty)

                // Once it is accepted by its id, mallory is known, and the name is ambiguous.
                try await alice.expect(0, "accept", mallory.id())
                #expect(await asked.outcome().status == 0)
                let ambiguous = try await alice.expect(65, "send", "bob", "for whom?")
                for candidate in [id, try await mallory.id()] { #expect(ambiguous.errors.contains(candidate), "\(ambiguous)") }

                // After bob's return, both are present and known. Sending by name still fails, and sending by id works.
                try await bob.start()
                try await bob.awaitConnected(to: alice)
                try await alice.expect(65, "send", "bob", "for whom?")
                try await alice.expect(0, "send", String(id.prefix(8)), "for bob alone")
                #expect(try await bob.receive(1).map { String(decoding: $0.body, as: UTF8.self) } == ["for bob alone"])
                #expect(try await mallory.receive(1, seconds: 1).isEmpty)
            }
        }

        /// An advertised id is not proven, and may begin with a name: here it is advertised over real mDNS.
        @Test func anAdvertisedIDTakesNoName() async throws {
            try await Laboratory.run { laboratory in
                let alice = try await laboratory.daemon("alice")
                let pi = try await laboratory.daemon("raspberrypi", on: "bob", environment: ["EARSHOT_INVITATIONS_FROM_UNKNOWN": "accept"])
                try await laboratory.host("carol")
                let forged = "RASPBERRYPI" + String(repeating: "A", count: 41)
                _ = try laboratory.start(
                    on: "carol",
                    [
                        "/usr/bin/avahi-publish", "-s", "mallory", "_\(laboratory.serviceType)._tcp", "4747", "v=1", "id=\(forged)",
                        "name=mallory",
                    ])
                try await eventually("alice sees the forged id") { try await alice.peers().contains { $0.id == forged } }
                // A stranger's name is also more than the beginning of such an id.
                try await alice.awaitPeer(pi)
                try await alice.expect(0, "invite", "raspberrypi")
                try await alice.expect(0, "trust", "raspberrypi")
                try await alice.expect(0, "send", "raspberrypi", "for the one I trust")
                #expect(try await pi.receive(1).map { String(decoding: $0.body, as: UTF8.self) } == ["for the one I trust"])
                #expect(try await pi.stop() == 0)
                try await alice.expect(79, "send", "raspberrypi", "though it is away", "--timeout", "1")
                // No peer has this name: the error lists the advertised id, and the whole id means that peer.
                let unknown = try await alice.expect(68, "send", "RASPBERRYP", "to nobody")
                #expect(unknown.errors.contains(forged), "\(unknown)")
                try await alice.expect(77, "send", forged, "a stranger")
            }
        }

        /// A member takes the name of an absent member: nothing is sent by that name any more, and the conflict is shown.
        @Test func aMemberTakesNoAbsentMembersName() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                let id = try await bob.id()
                #expect(try await bob.stop() == 0)
                let mallory = try await laboratory.daemon(
                    "bob", on: "carol", environment: ["EARSHOT_INVITATIONS_FROM_UNKNOWN": "accept"])
                try await alice.awaitPeer(mallory)
                try await alice.expect(0, "invite", mallory.id())
                let ids = Set([id, try await mallory.id()])
                for words in [
                    ["send", "bob", "for whom?"], ["receive", "--from", "bob"], ["trust", "bob"], ["leave", "bob"], ["accept", "bob"],
                    ["policy", "explain", "bob"], ["receive", "--from", "bob", "--follow"], ["stream", "accept", "--from", "bob"],
                ] {
                    let refused = try await alice.earshot(words)
                    #expect(refused.status == 65 && ids.allSatisfy(refused.errors.contains), "\(words): \(refused)")
                }
                let rows = try await alice.peers().filter { $0.name == "bob" }
                #expect(Set(rows.map(\.id.description)) == ids && Set(rows.compactMap(\.nameConflict?.description)) == ids, "\(rows)")
                let shown = try await alice.expect(0, "peers")
                #expect(shown.errors.contains("two peers that you know are called bob"), "\(shown)")
                // Sent by id, the message reaches the present peer.
                try await alice.expect(0, "send", String(try await mallory.id().prefix(8)), "for mallory")
                #expect(try await mallory.receive(1).map { String(decoding: $0.body, as: UTF8.self) } == ["for mallory"])
            }
        }

        @Test func anyNameNames() async throws {
            try await Laboratory.run { laboratory in
                let names = ["two words 🦊", "b\u{202E}b\u{200B}", "a/b?c%20#d"]
                let alice = try await laboratory.daemon("alice")
                for name in names {
                    let peer = try await laboratory.daemon(name, on: "bob")
                    try await alice.awaitPeer(peer)
                    let pending = try alice.begin(["invite", name])
                    try await peer.awaitInvitation(from: alice)
                    pending.signal(SIGINT)
                    #expect(await pending.outcome().status == 130)
                    #expect(try await alice.peers().contains { $0.name == name }, "kept as it came")
                    await peer.kill()
                }
                let shown = try await alice.expect(0, "peers")
                #expect(!(shown.output.contains("\u{202E}") || shown.output.contains("\u{200B}")), "shown escaped")
            }
        }
    }
}
