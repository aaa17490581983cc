import APIDocument
import EarshotClient
import EarshotWire
import Foundation
import Testing

@testable import Earshot
@testable import earshotd

/// The effect of groups on other parts of the API: sessions, trust, blocking, limits and settings.
@Suite(.timeLimit(.minutes(2))) struct GroupRulesAPITests {
    private static func states(_ answer: APIAnswer) throws -> [String?] {
        try answer.json["members"]?.elements.map { $0["state"]?.string } ?? []
    }

    @Test func aGroupIsNoSession() async throws {
        try await GroupsAPITests.team { alice, bob, _, _ async throws in
            for api in [alice, bob] {
                #expect(try await api.call("GET", "/v1/sessions").json["sessions"]?.elements == [])
                #expect(try await api.call("POST", "/v1/messages", json: #"{"to":"all","body":"x"}"#).code == "not-connected")
            }
            #expect(try await alice.call("POST", "/v1/messages", json: #"{"to":["bob"],"body":"x"}"#).code == "not-connected")
            #expect(try await alice.call("GET", "/v1/peers/bob").json["trust"]?.string == "unknown")
            // Distrust is not about it either.
            #expect(try await alice.call("PUT", "/v1/peers/bob/trust", json: #"{"trust":"unknown"}"#).status == 200)
            #expect(try Self.states(try await alice.call("GET", "/v1/groups/team")) == ["connected", "connected"])
        }
    }

    @Test func whoIsBlockedIsNotSentTo() async throws {
        try await GroupsAPITests.team { alice, bob, _, _ async throws in
            #expect(try await alice.call("PUT", "/v1/peers/bob/trust", json: #"{"trust":"blocked"}"#).status == 200)
            #expect(try Self.states(try await alice.call("GET", "/v1/groups/team")) == ["connected", "blocked"])
            #expect(try await alice.call("POST", "/v1/messages", json: #"{"group":"team","body":"x"}"#).code == "invalid-parameter")
            #expect(try await alice.call("POST", "/v1/groups/team/invitations", json: #"{"peers":["bob"]}"#).code == "forbidden")
            #expect(try await bob.call("GET", "/v1/messages?state=all").json["messages"]?.elements == [])
        }
    }

    @Test func nobodyTalksAlone() async throws {
        try await APIServer.with { server in
            let api = APICaller(path: server.path)
            _ = try await api.call("POST", "/v1/groups", json: #"{"name":"team"}"#)
            #expect(try await api.call("POST", "/v1/messages", json: #"{"group":"team","body":"x"}"#).code == "invalid-parameter")
        }
    }

    @Test func aMessageMayBeUnreliable() async throws {
        try await GroupsAPITests.team { alice, bob, id, servers in
            // Only callers that read the events at that time receive the message, and none can read it later.
            let events = servers[1].node.events.subscribe()
            let text = #"{"group":"team","body":"now","mode":"unreliable"}"#
            let sent = try await alice.call("POST", "/v1/messages", json: text)
            #expect(sent.status == 200)
            #expect(try sent.json["recipients"]?.elements.map { $0["status"]?.string } == ["sent"])
            for await event in events {
                guard case .messageReceived(let message) = event.kind else { continue }
                #expect(message.group?.id.description == id && message.mode == .unreliable)
                break
            }
            #expect(try await bob.call("GET", "/v1/messages").json["messages"]?.elements == [])
        }
    }

    @Test func theSameIsSentOnce() async throws {
        try await GroupsAPITests.team { alice, bob, _, _ async throws in
            let text = #"{"group":"team","body":"once","message_id":"\#(APICallTests.someID)"}"#
            for _ in 0..<2 { #expect(try await alice.call("POST", "/v1/messages", json: text).status == 200) }
            #expect(try await bob.call("GET", "/v1/messages").json["messages"]?.elements.count == 1)
            let other = #"{"group":"team","body":"twice","message_id":"\#(APICallTests.someID)"}"#
            #expect(try await alice.call("POST", "/v1/messages", json: other).code == "conflict")
        }
    }

    @Test func anInvitationIsTakenBack() async throws {
        try await APIServer.pair { alice, bob in
            let (ours, theirs) = (APICaller(path: alice.path), APICaller(path: bob.path))
            _ = try await ours.call("POST", "/v1/groups", json: #"{"name":"team"}"#)
            _ = try await ours.call("POST", "/v1/groups", json: #"{"name":"crew"}"#)
            let asked = try await ours.call("POST", "/v1/groups/team/invitations", json: #"{"peers":["bob"]}"#)
            let id = try #require(try asked.json["invitations"]?.elements.first?["id"]?.string)
            let second = try await ours.call("POST", "/v1/groups/crew/invitations", json: #"{"peers":["bob"]}"#)
            #expect(second.code == "conflict", "one at a time")
            try await bob.event { if case .invitationReceived = $0 { () } else { nil } }
            #expect(try await ours.call("DELETE", "/v1/invitations/\(id)").json["state"]?.string == "cancelled")
            try await bob.event { if case .invitationResolved(let row) = $0, row.state == .cancelled { () } else { nil } }
            let late = try await theirs.call("POST", "/v1/invitations/\(id)/response", json: #"{"decision":"accept"}"#)
            #expect(late.code == "conflict")
            #expect(try await theirs.call("GET", "/v1/groups").json["groups"]?.elements == [])
            #expect(try await ours.call("POST", "/v1/groups/crew/invitations", json: #"{"peers":["bob"]}"#).status == 201)
        }
    }

    /// The settings answer an invitation from a trusted peer and from one that is not trusted.
    @Test(arguments: [
        (InvitationPolicy.ask, true, "pending"), (.accept, true, "accepted"), (.accept, false, "pending"), (.reject, true, "declined"),
    ])
    func theSettingsAnswerGroupInvitations(_ policy: InvitationPolicy, _ isTrusted: Bool, _ state: String) async throws {
        try await APIServer.pair { alice, bob in
            var configuration = await bob.node.configuration
            configuration.groupInvitations = policy
            try await bob.node.apply(configuration) { nil }
            if isTrusted { _ = try await bob.node.setTrust(.trusted, for: alice.node.id.description) }
            let api = APICaller(path: alice.path)
            _ = try await api.call("POST", "/v1/groups", json: #"{"name":"team"}"#)
            let asked = try await api.call("POST", "/v1/groups/team/invitations", json: #"{"peers":["bob"]}"#)
            let id = try #require(try asked.json["invitations"]?.elements.first?["id"]?.string)
            try await bob.event { kind -> Void? in
                switch kind {
                case .invitationReceived: state == "pending" ? () : nil
                case .invitationResolved: ()
                default: nil
                }
            }
            if state != "pending" { try await alice.event { if case .invitationResolved = $0 { () } else { nil } } }
            #expect(try await api.call("GET", "/v1/invitations/\(id)").json["state"]?.string == state)
            let groups = try await APICaller(path: bob.path).call("GET", "/v1/groups").json["groups"]?.elements
            #expect(groups?.count == (state == "accepted" ? 1 : 0))
        }
    }

    @Test func thereAreSoManyGroups() async throws {
        try await APIServer.with { server in
            let api = APICaller(path: server.path)
            for number in 1...EarshotLimits.groups {
                #expect(try await api.call("POST", "/v1/groups", json: #"{"name":"\#(number)"}"#).status == 201)
            }
            let answer = try await api.call("POST", "/v1/groups", json: #"{"name":"one more"}"#)
            #expect(answer.status == 507 && answer.code == "no-space")
            #expect(try await api.call("DELETE", "/v1/groups/7").status == 204)
            #expect(try await api.call("POST", "/v1/groups", json: #"{"name":"one more"}"#).status == 201)
            let names = try await api.call("GET", "/v1/groups").json["groups"]?.elements.map { $0["name"]?.string }
            #expect(names == (1...EarshotLimits.groups).filter { $0 != 7 }.map(String.init) + ["one more"])
        }
    }
}
