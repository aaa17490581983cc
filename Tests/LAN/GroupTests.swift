import EarshotClient
import Foundation
import Testing

extension LAN {
    /// Groups on separate hosts, used through the command line.
    @Suite struct Groups {
        private static let names = ["alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi"]

        /// Starts daemons, each on its own host, that all see each other.
        private func daemons(
            _ count: Int, in laboratory: Laboratory, environment: [String: [String: String]] = [:]
        ) async throws -> [Daemon] {
            var daemons: [Daemon] = []
            for (place, name) in Self.names.prefix(count).enumerated() {
                if place > 2 { try await laboratory.ownHost(name, "10.77.0.\(place + 1)") }
                daemons.append(try await laboratory.daemon(name, environment: environment[name] ?? [:]))
            }
            for daemon in daemons {
                try await eventually(within: .seconds(60), "\(daemon.name) sees all others") {
                    try await daemon.peers().count { $0.presence == .nearby } == count - 1
                }
            }
            return daemons
        }

        /// The first daemon creates a group, and all others accept its invitations.
        private func team(_ count: Int, in laboratory: Laboratory, _ options: String...) async throws -> [Daemon] {
            let daemons = try await self.daemons(count, in: laboratory)
            let creator = daemons[0]
            let others = daemons.dropFirst()
            let made = try await creator.earshot(["group", "create", "team"] + others.map(\.name) + options)
            try #require(made.status == 0, "\(made)")
            for member in others {
                let invitation = try await member.awaitInvitation(from: creator)
                #expect(invitation.group?.name == "team")
                try await member.expect(0, "accept", creator.name)
            }
            let began = ContinuousClock.now
            for daemon in daemons { try await self.awaitMembers(daemons, at: daemon) }
            measured("until \(count) members are all connected, after the last has accepted", ContinuousClock.now - began)
            return daemons
        }

        private func group(_ daemon: Daemon, _ name: String = "team") async throws -> ControlAPI.Group? {
            try await daemon.decode(ControlAPI.GroupList.self, "group", "list").groups.first { $0.name == name }
        }

        /// Waits until a daemon lists exactly these members, all of them connected.
        private func awaitMembers(_ members: [Daemon], at daemon: Daemon, named name: String = "team") async throws {
            let names = members.map(\.name).sorted()
            try await eventually(within: .seconds(60), "\(daemon.name) is connected to \(names) in \(name)") {
                guard let group = try await self.group(daemon, name), group.state == .known(.joined) else { return false }
                return group.members.map(\.name).sorted() == names && group.members.allSatisfy { $0.state == .known(.connected) }
            }
        }

        private func awaitNone(at daemon: Daemon) async throws {
            try await eventually(within: .seconds(60), "\(daemon.name) is in no group") {
                try await daemon.decode(ControlAPI.GroupList.self, "group", "list").groups.isEmpty
            }
        }

        /// All eight members send to all; each receives each message once, with its sender. A member that was killed receives what it
        /// missed, all see the new name, and a removed member receives nothing more.
        @Test func eightTalkAsOne() async throws {
            try await Laboratory.run { laboratory in
                let daemons = try await self.team(8, in: laboratory)
                let (alice, bob, erin, heidi) = (daemons[0], daemons[1], daemons[4], daemons[7])
                for daemon in daemons {
                    let receipt = try await daemon.decode(
                        ControlAPI.MessageReceipt.self, "send", "--group", "team", "hello from \(daemon.name)")
                    #expect(receipt.recipients.count == 7)
                    #expect(receipt.recipients.allSatisfy { $0.status == .known(.delivered) })
                }
                for daemon in daemons {
                    let messages = try await daemon.receive(7)
                    #expect(Set(messages.map(\.sender.name)) == Set(daemons.map(\.name)).subtracting([daemon.name]))
                    #expect(messages.allSatisfy { String(decoding: $0.body, as: UTF8.self) == "hello from \($0.sender.name)" })
                    #expect(messages.allSatisfy { $0.group?.name == "team" })
                    // Accepting the group does not create a session.
                    #expect(try await daemon.sessions().isEmpty)
                }

                await erin.kill()
                try await bob.expect(0, "send", "--group", "team", "--queue", "for all that come back")
                try await erin.start()
                let missed = try await erin.receive(1, seconds: 60)
                #expect(missed.map { String(decoding: $0.body, as: UTF8.self) } == ["for all that come back"])
                for daemon in daemons where ![bob.name, erin.name].contains(daemon.name) { #expect(try await daemon.receive(1).count == 1) }

                try await bob.expect(77, "group", "rename", "team", "bob's")
                try await alice.expect(0, "group", "rename", "team", "crew")
                for daemon in daemons { try await self.awaitMembers(daemons, at: daemon, named: "crew") }

                try await bob.expect(77, "group", "remove", "crew", heidi.name)
                try await alice.expect(0, "group", "remove", "crew", heidi.name)
                try await self.awaitNone(at: heidi)
                try await heidi.expect(68, "send", "--group", "crew", "am I out?")
                let seven = Array(daemons.dropLast())
                for daemon in seven { try await self.awaitMembers(seven, at: daemon, named: "crew") }
                let receipt = try await bob.decode(ControlAPI.MessageReceipt.self, "send", "--group", "crew", "without heidi")
                #expect(receipt.recipients.count == 6)

                try await erin.expect(0, "group", "leave", "crew")
                try await self.awaitNone(at: erin)
                let six = seven.filter { $0.name != erin.name }
                for daemon in six { try await self.awaitMembers(six, at: daemon, named: "crew") }

                try await alice.expect(0, "group", "dissolve", "crew")
                for daemon in six { try await self.awaitNone(at: daemon) }
                try await bob.expect(68, "send", "--group", "crew", "anyone?")
            }
        }

        private func files(_ daemon: Daemon) async throws -> [ControlAPI.Resource] {
            try await daemon.decode(ControlAPI.ResourceList.self, "file", "list", "--group", "team").resources
        }

        /// Checks that a member's file from the group has the sent content.
        private func awaitFile(_ name: String, at daemon: Daemon, like content: Data) async throws {
            try await eventually(within: .seconds(60), "\(daemon.name) has \(name)") {
                try await self.files(daemon).contains { $0.name == name && $0.state == .known(.completed) }
            }
            try await daemon.expect(0, "file", "get", name)
            #expect(FileManager.default.contents(atPath: "\(daemon.place)/\(name)") == content, "\(name) at \(daemon.name)")
        }

        /// A file goes to all members, even if its sender is killed meanwhile. An absent member receives it later, and a removed member
        /// never.
        @Test func aFileGoesToAll() async throws {
            try await Laboratory.run { laboratory in
                let daemons = try await self.team(5, in: laboratory)
                let (alice, bob, erin) = (daemons[0], daemons[1], daemons[4])
                let content = Data((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
                try content.write(to: URL(fileURLWithPath: "\(alice.place)/plan"))
                let sent = try await alice.decode(ControlAPI.ResourceList.self, "file", "send", "--group", "team", "\(alice.place)/plan")
                    .resources
                #expect(sent.count == 4 && sent.allSatisfy { $0.state == .known(.completed) && $0.group?.name == "team" })
                #expect(Set(sent.compactMap(\.shareID)).count == 1)
                for daemon in daemons.dropFirst() {
                    try await self.awaitFile("plan", at: daemon, like: content)
                    let received = try await self.files(daemon)
                    #expect(
                        received.map(\.peerName) == ["alice"] && received.first?.group?.name == "team" && received.first?.shareID == nil)
                    #expect(try await daemon.sessions().isEmpty)
                }
                #expect(try await alice.files().count == 4)

                // A member other than the creator sends to all members too: queued in the daemon, which is killed, for an absent member.
                await erin.kill()
                let large = Data(repeating: 7, count: 60_000_000)
                try large.write(to: URL(fileURLWithPath: "\(bob.place)/large"))
                try await bob.expect(0, "file", "send", "--group", "team", "\(bob.place)/large", "--queue")
                try await bob.restart()
                try await erin.start()
                for daemon in daemons where daemon.name != bob.name { try await self.awaitFile("large", at: daemon, like: large) }
                try await eventually("it is told so") {
                    try await self.files(bob).filter { $0.direction == .outgoing }.allSatisfy { $0.state == .known(.completed) }
                }

                // Cancelled for all members by the share id.
                await erin.kill()
                let waiting = try await alice.decode(
                    ControlAPI.ResourceList.self, "file", "send", "--group", "team", "\(alice.place)/plan", "--queue"
                ).resources
                let share = try #require(waiting.first?.shareID)
                try await alice.expect(0, "file", "cancel", share.description)
                #expect(try await self.files(alice).filter { $0.shareID == share }.count { $0.state == .known(.cancelled) } == 1)

                try await alice.expect(0, "group", "remove", "team", erin.name)
                let last = try await alice.decode(ControlAPI.ResourceList.self, "file", "send", "--group", "team", "\(alice.place)/plan")
                    .resources
                #expect(last.count == 3 && last.allSatisfy { $0.state == .known(.completed) })
                try await alice.expect(68, "file", "send", "--group", "nobody's", "\(alice.place)/plan")
            }
        }

        private func awaitNo(_ name: String, at daemon: Daemon) async throws {
            try await eventually(within: .seconds(60), "\(daemon.name) is not in \(name)") { try await self.group(daemon, name) == nil }
        }

        /// A peer without TLS can join only a group that allows it. Removing a member with its invitees removes these too. Any member can
        /// create a new group from an old one.
        @Test func groupsWithoutTLSAndFromOthers() async throws {
            try await Laboratory.run { laboratory in
                let preference = ["alice": "optional", "bob": "optional", "carol": "none"].mapValues { ["EARSHOT_PEER_ENCRYPTION": $0] }
                let three = try await self.daemons(3, in: laboratory, environment: preference)
                let (alice, bob, carol) = (three[0], three[1], three[2])
                let made = try alice.begin(["group", "create", "safe", bob.name])
                try await bob.awaitInvitation(from: alice)
                try await bob.expect(0, "accept", alice.name)
                #expect(await made.outcome().status == 0)
                let refused = try await alice.earshot("group", "invite", "safe", carol.name)
                #expect(refused.status != 0 && refused.errors.contains("without TLS"), "\(refused)")

                try await alice.expect(0, "group", "create", "open", bob.name, "--unprotected")
                try await bob.awaitInvitation(from: alice)
                try await bob.expect(0, "accept", alice.name)
                // Any member can invite others, and waits for the answer.
                let inviting = try bob.begin(["group", "invite", "open", carol.name])
                #expect(try await carol.awaitInvitation(from: bob).group?.name == "open")
                try await carol.expect(0, "accept", bob.name)
                #expect(await inviting.outcome().status == 0)
                for daemon in three { try await self.awaitMembers(three, at: daemon, named: "open") }
                try await carol.expect(0, "send", "--group", "open", "hello")
                for daemon in [alice, bob] { #expect(try await daemon.receive(1).first?.group?.name == "open") }

                try await carol.expect(0, "group", "create", "again", "--from", "open", "--unprotected")
                for daemon in [alice, bob] {
                    try await daemon.awaitInvitation(from: carol)
                    try await daemon.expect(0, "accept", carol.name)
                }
                for daemon in three { try await self.awaitMembers(three, at: daemon, named: "again") }

                try await alice.expect(0, "group", "remove", "open", bob.name, "--invited")
                for daemon in [bob, carol] { try await self.awaitNo("open", at: daemon) }
                try await self.awaitMembers([alice], at: alice, named: "open")
                for daemon in three { try await self.awaitMembers(three, at: daemon, named: "again") }
            }
        }

        /// A member is removed while it is off the network. The members that know of the removal ignore it, and it learns of the removal
        /// when it returns. Members can invite others, except in a closed group.
        @Test func whoIsTakenOutWhileAwayLearnsOfIt() async throws {
            try await Laboratory.run { laboratory in
                let daemons = try await self.team(4, in: laboratory)
                let (alice, bob, carol, dave) = (daemons[0], daemons[1], daemons[2], daemons[3])
                try await laboratory.lab("link", dave.host, "down")
                try await alice.expect(0, "group", "remove", "team", dave.name)
                let three = [alice, bob, carol]
                for daemon in three { try await self.awaitMembers(three, at: daemon) }
                // The member does not know of its removal, and sends a message.
                try await dave.expect(0, "send", "--group", "team", "--queue", "still here")
                let gone = try dave.begin(["group", "show", "team", "--watch"])
                try await eventually("it watches the group") { !gone.outputSoFar().isEmpty }
                try await laboratory.lab("link", dave.host, "up")
                try await self.awaitNone(at: dave)
                let outcome = await gone.outcome()
                #expect(outcome.status == 0)
                #expect(outcome.errors.contains("removed"))
                try await bob.expect(0, "send", "--group", "team", "the three of us")
                let received = try await carol.receive(1)
                #expect(received.map { String(decoding: $0.body, as: UTF8.self) } == ["the three of us"])
                try await alice.expect(75, "receive", "--from", dave.name, "--count", "1", "--timeout", "1")

                // A member may not invite a peer that the creator has removed.
                try await bob.expect(77, "group", "invite", "team", dave.name)
                try await alice.expect(0, "group", "create", "inner", bob.name, "--closed")
                try await bob.awaitInvitation(from: alice)
                try await bob.expect(0, "accept", alice.name)
                try await self.awaitMembers([alice, bob], at: bob, named: "inner")
                try await bob.expect(77, "group", "invite", "inner", carol.name)
            }
        }
    }
}
