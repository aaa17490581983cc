import APIDocument
import Earshot
import EarshotClient
import EarshotWire
import Foundation
import NIOCore
import Testing

@testable import earshotd

extension APIServer {
    /// Waits for an event, of the past ones too.
    func event<Value>(_ pick: (NodeEvent.Kind) -> Value?) async throws -> Value {
        for await event in self.node.events.subscribe(since: 0) {
            if let value = pick(event.kind) { return value }
        }
        throw CancellationError()
    }

    /// Waits until the group has so many members here that can be talked to, this machine too.
    func hasGroup(_ id: String, connected count: Int) async throws {
        try await self.event { kind -> Void? in
            guard case .groupChanged(let group) = kind, group.id.description == id, group.state == .joined else { return nil }
            return group.members.count == count && group.members.allSatisfy { $0.state == .connected } ? () : nil
        }
    }

    /// Waits until this machine is in the group no longer; why.
    func end(of group: String) async throws -> GroupEnd {
        try await self.event { kind -> GroupEnd? in
            guard case .groupLeft(let id, let end) = kind, id.description == group else { return nil }
            return end
        }
    }

    /// Answers the invitation to a group, once it has arrived.
    func answer(_ group: String, _ decision: String, in api: APICaller) async throws -> APIAnswer {
        let id = try await self.event { kind -> InvitationID? in
            guard case .invitationReceived(let invitation) = kind, invitation.group?.id.description == group else { return nil }
            return invitation.id
        }
        return try await api.call("POST", "/v1/invitations/\(id)/response", json: #"{"decision":"\#(decision)"}"#)
    }
}

/// Groups over the API of two real nodes. Each answer is checked against the document.
@Suite(.timeLimit(.minutes(2))) struct GroupsAPITests {
    /// Runs a test with alice's group `team`, in which bob is a member.
    static func team(
        _ more: String = "", _ body: (_ alice: APICaller, _ bob: APICaller, _ id: String, _ servers: [APIServer]) async throws -> Void
    ) async throws {
        try await APIServer.pair { alice, bob in
            let (ours, theirs) = (APICaller(path: alice.path), APICaller(path: bob.path))
            let made = try await ours.call("POST", "/v1/groups", json: #"{"name":"team"\#(more)}"#)
            let id = try #require(try made.json["id"]?.string)
            try #require(try await ours.call("POST", "/v1/groups/team/invitations", json: #"{"peers":["bob"]}"#).status == 201)
            try #require(try await bob.answer(id, "accept", in: theirs).status == 200)
            for server in [alice, bob] { try await server.hasGroup(id, connected: 2) }
            try await body(ours, theirs, id, [alice, bob])
        }
    }

    @Test func whoMakesAGroupIsItsCreator() async throws {
        try await APIServer.with { server in
            let api = APICaller(path: server.path)
            let made = try await api.call("POST", "/v1/groups", json: #"{"name":"née ☎️","closed":true,"unprotected":null}"#)
            #expect(made.status == 201)
            let group = try made.json
            #expect(group["name"]?.string == "née ☎️" && group["closed"] == .bool(true) && group["unprotected"] == .bool(false))
            #expect(group["role"]?.string == "creator" && group["state"]?.string == "joined")
            let own = server.node.id.description
            #expect(group["creator"]?.string == own)
            #expect(group["members"]?.elements.map { $0["peer_id"]?.string } == [own])
            #expect(group["members"]?.elements.first?["state"]?.string == "connected")
            let id = try #require(group["id"]?.string)
            for name in [id, String(id.prefix(8)), "n%C3%A9e%20%E2%98%8E%EF%B8%8F"] {
                #expect(try await api.call("GET", "/v1/groups/\(name)").json == group, "\(name)")
            }
            #expect(try await api.call("GET", "/v1/groups").json["groups"]?.elements == [group])
            let renamed = try await api.call("PATCH", "/v1/groups/\(id)", json: #"{"name":"crew"}"#)
            #expect(try renamed.json == group.replacing([.key("name")], with: .string("crew")))
            let metrics = try await api.call("GET", "/v1/metrics").text
            #expect(metrics.contains("\nearshot_groups 1\n") && metrics.contains("\nearshot_group_members{state=\"connected\"} 0\n"))
            #expect(try await api.call("DELETE", "/v1/groups/crew?dissolve=true").status == 204)
            #expect(try await api.call("GET", "/v1/groups").json["groups"]?.elements == [])
        }
    }

    @Test func anInvitationSaysToWhichGroup() async throws {
        try await APIServer.pair { alice, bob in
            let (ours, theirs) = (APICaller(path: alice.path), APICaller(path: bob.path))
            let id = try #require(try await ours.call("POST", "/v1/groups", json: #"{"name":"team"}"#).json["id"]?.string)
            let asked = try await ours.call("POST", "/v1/groups/team/invitations", json: #"{"peers":["bob"],"context":"aGk="}"#)
            #expect(asked.status == 201)
            let invitation = try #require(try asked.json["invitations"]?.elements.first)
            #expect(invitation["state"]?.string == "pending" && invitation["context"]?.string == "aGk=")
            let label: JSONValue = .object([
                "id": .string(id), "name": .string("team"), "creator": .string(alice.node.id.description), "members": .number(1),
            ])
            #expect(invitation["group"] == label)
            let joined = try await bob.answer(id, "accept", in: theirs)
            #expect(try joined.json["state"]?.string == "accepted" && joined.json["group"] == label)
            // The answer returns after alice has admitted bob.
            #expect(try await theirs.call("GET", "/v1/groups/team").json["state"]?.string == "joined")
            let decided = try await ours.call("GET", "/v1/invitations/\(try #require(invitation["id"]?.string))")
            #expect(try decided.json["state"]?.string == "accepted" && decided.json["group"] == label)
            // A session is not to a group.
            let other = try await ours.call("POST", "/v1/invitations?wait=true", json: #"{"peer":"bob"}"#)
            #expect(try other.json["group"] == .null)
        }
    }

    @Test func whoWaitsHearsWhatWasDecided() async throws {
        try await APIServer.pair { alice, bob in
            let (ours, theirs) = (APICaller(path: alice.path), APICaller(path: bob.path))
            let id = try #require(try await ours.call("POST", "/v1/groups", json: #"{"name":"team"}"#).json["id"]?.string)
            async let asked = ours.call("POST", "/v1/groups/team/invitations?wait=true", json: #"{"peers":["bob"]}"#)
            #expect(try await bob.answer(id, "reject", in: theirs).json["state"]?.string == "declined")
            let answer = try await asked
            #expect(answer.status == 200)
            #expect(try answer.json["invitations"]?.elements.map { $0["state"]?.string } == ["declined"])
        }
    }

    @Test func whoIsInAlreadyIsAnsweredAtOnce() async throws {
        try await Self.team { alice, _, _, _ in
            for query in ["", "?wait=true"] {
                let again = try await alice.call("POST", "/v1/groups/team/invitations\(query)", json: #"{"peers":["bob"]}"#)
                #expect(again.status == 200)
                #expect(try again.json["invitations"]?.elements.map { $0["state"]?.string } == ["accepted"])
            }
        }
    }

    @Test func aMessageToAGroupNamesIt() async throws {
        try await Self.team { alice, bob, id, servers in
            let label: JSONValue = .object(["id": .string(id), "name": .string("team")])
            // In the form that is read quickly, and in one that is not.
            for (body, text) in [("one", #"{"group":"team","body":"one"}"#), ("two", #"{"group":"te\u0061m","body":"two","to":null}"#)] {
                let sent = try await alice.call("POST", "/v1/messages", json: text)
                #expect(sent.status == 200)
                let recipients = try #require(try sent.json["recipients"]?.elements)
                #expect(recipients.map { $0["peer_id"]?.string } == [servers[1].node.id.description])
                #expect(recipients.first?["status"]?.string == "delivered")
                let kept = try await alice.call("GET", "/v1/messages/\(try #require(try sent.json["message_id"]?.string))")
                #expect(try kept.json["group"] == label && kept.json["body"]?.string == body)
            }
            // The message is one of two lines, and the other line is not to the group.
            try #require(try await alice.call("POST", "/v1/invitations?wait=true", json: #"{"peer":"bob"}"#).status == 200)
            let lines = #"{"group":"\#(id)","body":"three"}"# + "\n" + #"{"to":["bob"],"body":"four"}"# + "\n"
            _ = try await alice.call("POST", "/v1/messages", ["Content-Type: application/x-ndjson"], body: Array(lines.utf8))
            let all = try #require(try await bob.call("GET", "/v1/messages").json["messages"]?.elements)
            #expect(Set(all.map { $0["body"]?.string }) == ["one", "two", "three", "four"])
            for message in all { #expect(message["group"] == (message["body"]?.string == "four" ? .null : label)) }
            for name in ["team", id, String(id.prefix(8))] {
                let some = try await bob.call("GET", "/v1/messages?group=\(name)").json["messages"]?.elements
                #expect(some?.map { $0["body"]?.string } == ["one", "two", "three"], "\(name)")
            }
        }
    }

    @Test func aQueuedMessageIsAcceptedAndArrives() async throws {
        try await Self.team { alice, _, _, servers in
            let sent = try await alice.call("POST", "/v1/messages", json: #"{"group":"team","body":"later","queue":true}"#)
            #expect(sent.status == 202)
            let id = try #require(try sent.json["message_id"]?.string)
            try await servers[0].event { kind -> Void? in
                guard case .messageStatus(let message, let recipient) = kind, message.description == id else { return nil }
                return recipient.status == .delivered ? () : nil
            }
            let message = try await servers[1].event { if case .messageReceived(let message) = $0 { message } else { nil } }
            #expect(message.group?.name == "team")
        }
    }

    @Test func whoLeavesIsGone() async throws {
        try await Self.team { alice, bob, id, servers in
            _ = try await alice.call("POST", "/v1/messages", json: #"{"group":"team","body":"x"}"#)
            #expect(try await bob.call("DELETE", "/v1/groups/team").status == 204)
            #expect(try await servers[1].end(of: id) == .left)
            #expect(try await bob.call("GET", "/v1/groups").json["groups"]?.elements == [])
            #expect(try await bob.call("GET", "/v1/groups/team").code == "unknown-group")
            // The messages of the group are still there, and the group's whole id finds them.
            #expect(try await bob.call("GET", "/v1/messages?group=team").code == "unknown-group")
            #expect(try await bob.call("GET", "/v1/messages?group=\(id)").json["messages"]?.elements.count == 1)
            // alice learns of the leave: her group grows to two members, and later has one again.
            var counts: [Int] = []
            try await servers[0].event { kind -> Void? in
                guard case .groupChanged(let group) = kind else { return nil }
                counts.append(group.members.count)
                return counts.contains(2) && counts.last == 1 ? () : nil
            }
        }
    }

    @Test func theCreatorTakesAMemberOut() async throws {
        try await Self.team { alice, bob, id, servers in
            let rest = try await alice.call("DELETE", "/v1/groups/team/members/bob")
            #expect(rest.status == 200)
            #expect(try rest.json["members"]?.elements.map { $0["peer_id"]?.string } == [servers[0].node.id.description])
            #expect(try await alice.call("DELETE", "/v1/groups/team/members/bob").code == "not-member")
            #expect(try await servers[1].end(of: id) == .removed)
            #expect(try await bob.call("POST", "/v1/messages", json: #"{"group":"team","body":"x"}"#).code == "unknown-group")
        }
    }

    /// A third machine, which the two others see.
    private static func withCarol(_ others: [APIServer], _ body: (APIServer) async throws -> Void) async throws {
        let known = try others.map { try ConfiguredPeer("127.0.0.1:\($0.port)") }
        try await APIServer.with("carol", configure: { $0.configuredPeers = known }) { carol in
            for other in others {
                try await other.event { kind -> Void? in
                    switch kind {
                    case .peerFound(let peer), .peerChanged(let peer): peer.id == carol.node.id && peer.proven ? () : nil
                    default: nil
                    }
                }
            }
            try await body(carol)
        }
    }

    @Test func severalAreAskedAtOnce() async throws {
        try await APIServer.pair { alice, bob in
            try await Self.withCarol([alice, bob]) { carol in
                let api = APICaller(path: alice.path)
                let id = try #require(try await api.call("POST", "/v1/groups", json: #"{"name":"team"}"#).json["id"]?.string)
                let peers = #"{"peers":["carol","bob"]}"#
                async let asked = api.call("POST", "/v1/groups/team/invitations?wait=true", json: peers)
                _ = try await bob.answer(id, "accept", in: APICaller(path: bob.path))
                _ = try await carol.answer(id, "reject", in: APICaller(path: carol.path))
                let invitations = try #require(try await asked.json["invitations"]?.elements)
                #expect(invitations.map { $0["peer_name"]?.string } == ["carol", "bob"])
                #expect(invitations.map { $0["state"]?.string } == ["declined", "accepted"])
                // All or none: of those two carol could be asked.
                let again = try await api.call("POST", "/v1/groups/team/invitations", json: #"{"peers":["carol","nobody"]}"#)
                #expect(again.code == "unknown-peer")
                #expect(try await api.call("GET", "/v1/invitations").json["invitations"]?.elements.count == 0)
            }
        }
    }

    @Test(arguments: [false, true]) func whoCameInThroughAMemberStaysOrGoes(_ goes: Bool) async throws {
        try await Self.team { alice, bob, id, servers in
            try await Self.withCarol(servers) { carol in
                let asked = try await bob.call("POST", "/v1/groups/team/invitations", json: #"{"peers":["carol"]}"#)
                try #require(asked.status == 201)
                try #require(try await carol.answer(id, "accept", in: APICaller(path: carol.path)).status == 200)
                for server in servers + [carol] { try await server.hasGroup(id, connected: 3) }
                let group = try await alice.call("GET", "/v1/groups/team").json
                #expect(group["members"]?.elements.map { $0["name"]?.string } == ["alice", "bob", "carol"])
                #expect(group["members"]?.elements.last?["invited_by"]?.string == servers[1].node.id.description)
                let rest = try await alice.call("DELETE", "/v1/groups/team/members/bob\(goes ? "?invited=true" : "")")
                #expect(try rest.json["members"]?.elements.map { $0["name"]?.string } == (goes ? ["alice"] : ["alice", "carol"]))
                #expect(try await servers[1].end(of: id) == .removed)
                if goes { #expect(try await carol.end(of: id) == .removed) }
            }
        }
    }

    @Test func allHearOfItsNewNameAndOfItsEnd() async throws {
        try await Self.team { alice, bob, id, servers in
            let renamed = try await alice.call("PATCH", "/v1/groups/team", json: #"{"name":"crew"}"#)
            #expect(try renamed.json["name"]?.string == "crew")
            try await servers[1].event { if case .groupChanged(let group) = $0, group.name == "crew" { () } else { nil } }
            #expect(try await bob.call("GET", "/v1/groups/crew").json["role"]?.string == "member")
            #expect(try await alice.call("DELETE", "/v1/groups/crew?dissolve=true").status == 204)
            for server in servers {
                #expect(try await server.end(of: id) == .dissolved)
            }
            #expect(try await bob.call("GET", "/v1/groups/crew").status == 404)
        }
    }

    // MARK: Refusals

    @Test func whoIsNotTheCreatorMayNot() async throws {
        try await Self.team(#","closed":true"#) { alice, bob, id, _ in
            let before = try await bob.call("GET", "/v1/groups").json
            for (method, target, json) in [
                ("PATCH", "/v1/groups/team", #"{"name":"crew"}"#), ("DELETE", "/v1/groups/team?dissolve=true", nil),
                ("DELETE", "/v1/groups/team/members/alice", nil), ("POST", "/v1/groups/team/invitations", #"{"peers":["alice"]}"#),
            ] as [(String, String, String?)] {
                let answer = try await bob.call(method, target, json: json)
                #expect(answer.status == 403 && answer.code == "forbidden", "\(method) \(target)")
            }
            #expect(try await bob.call("GET", "/v1/groups").json == before)
            #expect(try await alice.call("GET", "/v1/groups/\(id)").json["name"]?.string == "team")
        }
    }

    @Test func aGroupHasToBeKnownAndOne() async throws {
        try await APIServer.with { server in
            let api = APICaller(path: server.path)
            func answers(_ name: String) async throws -> [(Int, String?)] {
                var all: [APIAnswer] = []
                all.append(try await api.call("GET", "/v1/groups/\(name)"))
                all.append(try await api.call("PATCH", "/v1/groups/\(name)", json: #"{"name":"x"}"#))
                for query in ["", "?dissolve=true"] { all.append(try await api.call("DELETE", "/v1/groups/\(name)\(query)")) }
                all.append(try await api.call("POST", "/v1/groups/\(name)/invitations", json: #"{"peers":["bob"]}"#))
                all.append(try await api.call("DELETE", "/v1/groups/\(name)/members/bob"))
                all.append(try await api.call("GET", "/v1/messages?group=\(name)"))
                all.append(try await api.call("POST", "/v1/messages", json: #"{"group":"\#(name)","body":"x"}"#))
                return all.map { ($0.status, $0.code) }
            }
            for (status, code) in try await answers("team") { #expect(status == 404 && code == "unknown-group") }
            for _ in 0..<2 { _ = try await api.call("POST", "/v1/groups", json: #"{"name":"team"}"#) }
            for (status, code) in try await answers("team") { #expect(status == 409 && code == "ambiguous-group") }
            #expect(try await api.call("GET", "/v1/groups").json["groups"]?.elements.count == 2)
        }
    }

    @Test func whatIsNoRequestIsRefused() async throws {
        try await APIServer.with { server in
            let api = APICaller(path: server.path)
            _ = try await api.call("POST", "/v1/groups", json: #"{"name":"team"}"#)
            let long = String(repeating: "x", count: 64)
            let context = Data(repeating: 0, count: WireLimits.invitationContext + 1).base64EncodedString()
            for (method, target, json) in [
                ("POST", "/v1/groups", #"{}"#), ("POST", "/v1/groups", #"{"name":""}"#), ("POST", "/v1/groups", #"{"name":"\#(long)"}"#),
                ("POST", "/v1/groups", #"{"name":"a\nb"}"#), ("POST", "/v1/groups", #"{"name":"x","closed":"no"}"#),
                ("PATCH", "/v1/groups/team", #"{"name":""}"#), ("PATCH", "/v1/groups/team", #"{}"#),
                ("DELETE", "/v1/groups/team?dissolve=yes", nil), ("DELETE", "/v1/groups/team/members/bob?invited=1", nil),
                ("POST", "/v1/groups/team/invitations", #"{"peers":[]}"#), ("POST", "/v1/groups/team/invitations", #"{"peers":[""]}"#),
                ("POST", "/v1/groups/team/invitations", #"{"peers":["x"],"context":"\#(context)"}"#),
                ("POST", "/v1/groups/team/invitations", #"{"peers":["x"],"timeout_seconds":86401}"#),
                ("POST", "/v1/groups/team/invitations?wait=maybe", #"{"peers":["x"]}"#),
                ("POST", "/v1/messages", #"{"group":"team","to":["x"],"body":"x"}"#),
                ("POST", "/v1/messages", #"{"group":"","body":"x"}"#), ("POST", "/v1/messages", #"{"body":"x"}"#),
            ] as [(String, String, String?)] {
                let answer = try await api.call(method, target, json: json)
                #expect(answer.status == 400 && answer.code == "invalid-parameter", "\(method) \(target) \(json ?? "")")
            }
            #expect(try await api.call("POST", "/v1/groups/team/invitations", json: #"{"peers":["x"]}"#).code == "unknown-peer")
            #expect(try await api.call("DELETE", "/v1/groups/team/members/x").code == "not-member")
            #expect(try await api.call("POST", "/v1/groups", body: Array("name=x".utf8)).status == 415)
            #expect(try await api.call("PUT", "/v1/groups/team", json: "{}").fields["allow"] == "DELETE, GET, HEAD, PATCH")
            #expect(try await api.call("GET", "/v1/groups").json["groups"]?.elements.count == 1)
        }
    }
}
