import EarshotClient
import Foundation
import Testing

extension LAN {
    /// The readability of traffic on the wire, for all combinations of the two preferences.
    @Suite struct Encryption {
        private static let preferences = ["required", "optional", "none"]

        private enum Transport {
            case tls, plaintext, refused
        }

        /// The table of earshot-security(7).
        private static func transport(_ ours: String, _ theirs: String) -> Transport {
            switch Set([ours, theirs]) {
            case ["none"], ["none", "optional"]: .plaintext
            case ["none", "required"]: .refused
            default: .tls
            }
        }

        @Test func allNinePairs() async throws {
            try await Laboratory.run { laboratory in
                var alices: [String: Daemon] = [:]
                var bobs: [String: Daemon] = [:]
                for preference in Self.preferences {
                    let environment = ["EARSHOT_PEER_ENCRYPTION": preference]
                    alices[preference] = try await laboratory.daemon("a-\(preference)", on: "alice", environment: environment)
                    bobs[preference] = try await laboratory.daemon(
                        "b-\(preference)", on: "bob",
                        environment: environment.merging(["EARSHOT_INVITATIONS_FROM_UNKNOWN": "accept"]) { $1 })
                }
                let capture = try await Capture(on: "bob", in: laboratory)
                // Plaintext is sent last: when it has been captured, all earlier traffic has been captured too.
                let pairs = Self.preferences.flatMap { ours in Self.preferences.map { (ours, $0) } }
                for pair in pairs where Self.transport(pair.0, pair.1) != .plaintext { try await Self.talk(pair, alices, bobs, laboratory) }
                for pair in pairs where Self.transport(pair.0, pair.1) == .plaintext { try await Self.talk(pair, alices, bobs, laboratory) }
                for pair in pairs where Self.transport(pair.0, pair.1) == .plaintext {
                    try await capture.awaitSight(of: Self.marker("file", pair))
                }
                let bytes = try await capture.stop()
                for pair in pairs {
                    let isReadable = Self.transport(pair.0, pair.1) == .plaintext
                    for what in ["context", "message", "answer", "file"] {
                        #expect(Capture.holds(bytes, Self.marker(what, pair)) == isReadable, "\(what) of \(pair)")
                    }
                }
            }
        }

        private static func marker(_ what: String, _ pair: (String, String)) -> String { "<\(what) of \(pair.0) and \(pair.1)>" }

        /// Sends an invitation, a message in each direction and a file, each with a marker; or returns the refusal.
        private static func talk(
            _ pair: (String, String), _ alices: [String: Daemon], _ bobs: [String: Daemon], _ laboratory: Laboratory
        ) async throws {
            let (alice, bob) = (try #require(alices[pair.0]), try #require(bobs[pair.1]))
            try await alice.awaitPeer(bob)
            let transport = Self.transport(pair.0, pair.1)
            let invite = try await alice.expect(
                transport == .refused ? 76 : 0, "invite", bob.name, "--context", Self.marker("context", pair))
            guard transport != .refused else {
                #expect(invite.errors.contains("set encryption = optional in [peer]"))
                #expect(try await bob.sessions().allSatisfy { $0.members.allSatisfy { $0.name != alice.name } })
                return
            }
            try await bob.awaitConnected(to: alice)
            let isPlaintext = transport == .plaintext
            for (daemon, other) in [(alice, bob), (bob, alice)] {
                let protection: ControlAPI.Protection = isPlaintext ? .unprotected : .encrypted
                #expect(try await daemon.sessions().flatMap(\.members).first { $0.name == other.name }?.protection == .known(protection))
                for list in ["peers", "sessions"] {
                    let line = try await daemon.expect(0, list).output.split(separator: "\n").first { $0.contains(other.name) }
                    #expect(line?.contains("unprotected") == isPlaintext)
                }
            }
            let warning = "earshot: \(bob.name) is reached unprotected: anyone on the network can read this\n"
            let sent = try await alice.expect(0, "send", bob.name, Self.marker("message", pair))
            #expect(sent.output.isEmpty)
            #expect(sent.errors == (isPlaintext ? warning : ""))
            try await bob.expect(0, "send", alice.name, Self.marker("answer", pair))
            let file = "\(laboratory.place)/\(pair.0)-\(pair.1)"
            try Data(String(repeating: Self.marker("file", pair), count: 5000).utf8).write(to: URL(fileURLWithPath: file))
            let upload = try await alice.expect(0, "file", "send", bob.name, file)
            #expect(upload.errors.contains(warning) == isPlaintext)
        }

        /// A peer that has used TLS and then wants plaintext.
        @Test func whoHasSpokenTLSIsHeldToIt() async throws {
            try await Laboratory.run { laboratory in
                let settings = URL(fileURLWithPath: "\(laboratory.place)/bob.conf")
                try Data("[peer]\nencryption = optional\n[invitations]\nfrom_unknown = accept\n".utf8).write(to: settings)
                let alice = try await laboratory.daemon("alice", environment: ["EARSHOT_PEER_ENCRYPTION": "optional"])
                let bob = try await laboratory.daemon("bob", arguments: ["--config", settings.path])
                try await alice.awaitPeer(bob)
                try await alice.expect(0, "invite", "bob")
                try await bob.awaitConnected(to: alice)

                try Data("[peer]\nencryption = none\n[invitations]\nfrom_unknown = accept\n".utf8).write(to: settings)
                let capture = try await Capture(on: "bob", in: laboratory)
                try await bob.restart()
                // The memory survives a restart.
                try await alice.restart()
                try await alice.awaitPeer(bob)
                let before = try await alice.expect(76, "send", "bob", "<before>", "--timeout", "3")
                #expect(before.errors.contains("revoke the trust in it"))
                #expect(!before.errors.contains("unprotected"))
                #expect(try await alice.sessions().flatMap(\.members).allSatisfy { $0.state != .connected })
                #expect(try await bob.sessions().flatMap(\.members).allSatisfy { $0.state != .connected })

                try await alice.expect(0, "distrust", "bob")
                try await alice.expect(0, "invite", "bob")
                let after = try await alice.expect(0, "send", "bob", "<after>")
                #expect(after.errors.contains("bob is reached unprotected"))
                #expect(try await bob.receive(1).map { String(decoding: $0.body, as: UTF8.self) } == ["<after>"])
                try await capture.awaitSight(of: "<after>")
                #expect(!Capture.holds(try await capture.stop(), "<before>"))
            }
        }
    }
}
