import APIDocument
import Earshot
import EarshotClient
import Foundation
import HTTPTypes
import NIOCore
import Testing

@testable import earshotd

/// Every call of the API, made against two real nodes and held to the document.
@Suite struct APICallTests {
    /// The document has what the router has, and the other way round.
    @Test func theDocumentHasEveryRoute() async throws {
        try await APIServer.with { server in
            let services = ControlAPIServices(
                node: server.node, policy: CallerPolicy(owner: 0, group: nil), settings: server.settings)
            let routes = ControlRouter.routes(services).map { route in
                let path = route.path.split(separator: "/").map { $0.hasPrefix(":") ? "{\($0.dropFirst())}" : String($0) }
                return APIDocument.Operation(method: route.method.rawValue, path: "/" + path.joined(separator: "/"))
            }
            #expect(routes.count == Set(routes).count)
            #expect(Set(routes) == APIDocument.shared.operations)
            #expect(APIDocument.shared.operations.count > 25)
            #expect(APIDocument.shared.root["info"]?["version"]?.string == EarshotVersion.current)
        }
    }

    @Test func theDocumentHasEveryWord() throws {
        func words(_ schema: String, _ property: String? = nil) throws -> [String] {
            let value = try #require(APIDocument.shared.schema(schema))
            let place = try #require(property.map { value["properties"]?[$0] } ?? value)
            return try #require(place["x-extensible-enum"] ?? place["enum"]).elements.compactMap(\.string)
        }
        func all<Words: CaseIterable & RawRepresentable<String>>(_ type: Words.Type) -> [String] { type.allCases.map(\.rawValue) }
        #expect(try words("Code") == all(EarshotError.Code.self))
        #expect(all(ControlAPI.ErrorCode.self) == all(EarshotError.Code.self))
        #expect(try words("Problem", "remedy") == all(EarshotError.Remedy.self))
        #expect(all(ControlAPI.Remedy.self) == all(EarshotError.Remedy.self))
        #expect(try words("Peer", "presence") == all(ControlAPI.Peer.Presence.self))
        #expect(try words("Peer", "state") == all(ControlAPI.MemberState.self))
        #expect(try words("Member", "state") == all(ControlAPI.MemberState.self))
        #expect(try words("Peer", "trust") == all(ControlAPI.Trust.self))
        #expect(try words("TrustRequest", "trust") == all(ControlAPI.Trust.self))
        #expect(try words("Peer", "protection") == all(ControlAPI.Protection.self))
        #expect(try words("Peer", "trust_source") == all(ControlAPI.TrustSource.self))
        #expect(try words("Peer", "verified") == all(ControlAPI.Verified.self))
        #expect(try words("PingStep", "step") == all(ControlAPI.PeerPing.Step.Kind.self))
        #expect(try words("PingStep", "state") == all(ControlAPI.PeerPing.Step.State.self))
        #expect(try words("PeerPing", "connection") == all(ControlAPI.PeerPing.Connection.self))
        #expect(try words("Verification", "state") == all(ControlAPI.Verification.State.self))
        #expect(try words("Setting", "source") == all(ControlAPI.Setting.Source.self))
        #expect(try words("PolicyDecision", "action") == all(ControlAPI.PolicyDecision.Action.self))
        #expect(try words("PolicyDecision", "decision") == all(ControlAPI.PolicyDecision.Outcome.self))
        #expect(try words("Invitation", "state") == all(ControlAPI.Invitation.State.self))
        #expect(try words("InvitationResponse", "decision") == all(ControlAPI.InvitationResponse.Decision.self))
        #expect(try words("Group", "state") == all(ControlAPI.Group.State.self))
        #expect(try words("Group", "role") == all(ControlAPI.Group.Role.self))
        #expect(try words("GroupMember", "state") == all(ControlAPI.GroupMember.State.self))
        #expect(try words("GroupLeftEvent", "reason") == all(GroupEnd.self))
        #expect(try words("Message", "mode") == all(ControlAPI.Message.Mode.self))
        #expect(try words("MessageRequest", "mode") == all(ControlAPI.Message.Mode.self))
        #expect(try words("Message", "state") == all(ControlAPI.Message.State.self))
        #expect(try words("Recipient", "status") == all(ControlAPI.DeliveryStatus.self))
        #expect(try words("Resource", "kind") == all(ControlAPI.Resource.Kind.self))
        #expect(try words("Stream", "state") == all(ControlAPI.Stream.State.self))
        #expect(try words("Resource", "state") == all(ControlAPI.Resource.State.self))
        let events = try APIDocument.shared.schemaNames.filter { $0.hasSuffix("Event") && $0 != "Event" }.flatMap { name in
            try #require(APIDocument.shared.schema(name)?["properties"]?["type"]?["enum"]).elements.compactMap(\.string)
        }
        #expect(Set(all(ControlAPI.Event.Kind.self)).isSubset(of: events))
        #expect(events.count == Set(events).count)
    }

    /// Everything that a caller can do, in one run; each answer is held to the document, and no call and no success is left out.
    @Test(.timeLimit(.minutes(5))) func everyCallAnswersAsDocumented() async throws {
        let seen = SeenAnswers()
        try await APIServer.pair { alice, bob in
            let api = APICaller(path: alice.path, seen: seen)
            try await Self.look(api)
            try await Self.agree(api, with: bob)
            try await Self.compareDigits(api, with: bob)
            try await Self.exchangeMessages(api, with: bob)
            try await Self.talkInAGroup(api, with: bob)
            try await Self.exchangeStreams(api, with: bob)
            try await Self.exchangeFiles(api, with: bob)
            try await Self.part(api)
            try await Self.answer(alice, bob, seen)
            try await Self.readEvents(alice, seen)
            // Last, because the test's own configuration ends with it.
            #expect(try await api.call("POST", "/v1/settings/reload").status == 200)
        }
        let document = APIDocument.shared
        let expected = document.operations.flatMap { operation in
            document.statuses(operation).filter { $0 < 300 || $0 == 501 }.map { (operation, $0) }
        }
        let missing = expected.filter { operation, status in
            let isPartOfACall = status == 501 && document.statuses(operation).contains { $0 < 300 }
            return !isPartOfACall && !seen.all.contains("\(operation.method) \(operation.path) \(status)")
        }
        #expect(missing.map { "\($0.0.method) \($0.0.path) \($0.1)" }.sorted() == [])
    }

    private static func look(_ api: APICaller) async throws {
        #expect(try await api.call("GET", "/v1/status").json["name"]?.string == "alice")
        #expect(try await api.call("GET", "/v1/settings").json["settings"]?.elements.first?["value"]?.string == "alice")
        #expect(try await api.call("GET", "/v1/peers").status == 200)
        #expect(try await api.call("GET", "/v1/peers/bob").json["name"]?.string == "bob")
        #expect(try await api.call("GET", "/v1/peers/nobody").code == "unknown-peer")
        #expect(try await api.call("GET", "/v1/openapi.json").json["openapi"]?.string == "3.1.0")
        let metrics = try await api.call("GET", "/v1/metrics")
        #expect(metrics.status == 200 && metrics.text.contains("\nearshot_peers 1\n"))
    }

    static let someID = "0b0e8f6e-4f0e-4c6b-9d0c-6f1f6a2b7a11"

    private static func agree(_ api: APICaller, with bob: APIServer) async throws {
        let trusted = try await api.call("PUT", "/v1/peers/bob/trust", json: #"{"trust":"trusted"}"#)
        #expect(try trusted.json["trust"]?.string == "trusted")
        let named = try await api.call("PUT", "/v1/peers/bob/alias", json: #"{"alias":"printer"}"#)
        #expect(try named.json["name"]?.string == "printer" && named.json["display_name"]?.string == "bob")
        #expect(try await api.call("DELETE", "/v1/peers/printer/alias").json["name"]?.string == "bob")
        _ = try await api.call("PUT", "/v1/peers/bob/trust", json: #"{"trust":"unknown"}"#)
        #expect(try await api.call("POST", "/v1/messages", json: #"{"to":["bob"],"body":"x"}"#).code == "not-connected")
        let accepted = try await api.call("POST", "/v1/invitations?wait=true", json: #"{"peer":"bob","context":"aGk="}"#)
        #expect(accepted.status == 200)
        let id = try #require(try accepted.json["id"]?.string)
        #expect(try await api.call("GET", "/v1/invitations/\(id)").json["state"]?.string == "accepted")
        #expect(try await api.call("GET", "/v1/invitations?state=all").json["invitations"]?.elements.count == 1)
        #expect(try await api.call("DELETE", "/v1/invitations/\(id)").code == "conflict")
        #expect(try await api.call("GET", "/v1/invitations/\(Self.someID)").status == 404)
        #expect(try await api.call("GET", "/v1/sessions").json["sessions"]?.elements.count == 1)
    }

    /// Asked for on both sides, the digits are the same; trust then says that they were equal.
    private static func compareDigits(_ api: APICaller, with bob: APIServer) async throws {
        let policy = try await api.call("GET", "/v1/peers/bob/policy")
        #expect(try policy.json["decisions"]?.elements.count == 6)
        #expect(try await api.call("GET", "/v1/peers/bob/verification").json["state"]?.string == "none")
        let ping = try await api.call("POST", "/v1/peers/bob/ping").json
        #expect(ping["connection"]?.string == "standing" && (ping["round_trip_milliseconds"]?.number ?? -1) >= 0)
        #expect(ping["steps"]?.elements.allSatisfy { $0["state"]?.string == "ok" } == true)
        let asked = try await api.call("POST", "/v1/peers/bob/verification", json: #"{"timeout_seconds":60}"#)
        #expect(try asked.json["state"]?.string == "waiting")
        #expect(try await api.call("DELETE", "/v1/peers/bob/verification?mismatch=true").code == "conflict")
        let changes = bob.node.events.subscribe(since: 0)
        for await event in changes {
            if case .verificationChanged(let verification) = event.kind, verification.state == .requested { break }
        }
        _ = try await bob.node.verify("alice")
        var digits: String?
        while digits == nil { digits = try await api.call("GET", "/v1/peers/bob/verification").json["digits"]?.string }
        // The other side may have them a moment later.
        var theirs: String?
        while theirs == nil { theirs = try await bob.node.verification("alice").digits }
        #expect(theirs == digits)
        #expect(try await api.call("POST", "/v1/peers/bob/verification").code == "busy")
        let both = #"{"trust":"trusted","for_seconds":60,"expires_at":"2099-01-01T00:00:00Z"}"#
        #expect(try await api.call("PUT", "/v1/peers/bob/trust", json: both).code == "invalid-parameter")
        let old = #"{"trust":"trusted","expires_at":"2001-01-01T00:00:00Z"}"#
        #expect(try await api.call("PUT", "/v1/peers/bob/trust", json: old).code == "invalid-parameter")
        let trusted = try await api.call("PUT", "/v1/peers/bob/trust", json: #"{"trust":"trusted","for_seconds":3600}"#)
        #expect(try trusted.json["verified"]?.string == "matched" && trusted.json["trust_expires_at"]?.string != nil)
        #expect(try await api.call("GET", "/v1/peers/bob/verification").json["state"]?.string == "matched")
        let over = try await api.call("DELETE", "/v1/peers/bob/verification")
        #expect(try over.json["state"]?.string == "matched")
    }

    private static func exchangeMessages(_ api: APICaller, with bob: APIServer) async throws {
        let receipt = try await api.call("POST", "/v1/messages", json: #"{"to":["bob"],"body":"hello"}"#)
        #expect(try receipt.json["recipients"]?.elements.first?["status"]?.string == "delivered")
        let id = try #require(try receipt.json["message_id"]?.string)
        #expect(try await api.call("GET", "/v1/messages/\(id)").json["direction"]?.string == "outgoing")
        let queued = try await api.call("POST", "/v1/messages", json: #"{"to":["bob"],"body":"later","queue":true}"#)
        #expect(queued.status == 202)
        try await Self.queueForOneAway(api)
        let all = try await api.call("POST", "/v1/messages", json: #"{"to":"all","body":"now","mode":"unreliable"}"#)
        #expect(try all.json["recipients"]?.elements.first?["status"]?.string == "sent")
        let both = try await api.call("POST", "/v1/messages", json: #"{"to":"all","body":"x","mode":"unreliable","queue":true}"#)
        #expect(both.code == "invalid-parameter")
        let lines = try await api.call(
            "POST", "/v1/messages", ["Content-Type: application/x-ndjson"],
            body: Array("{\"to\":[\"bob\"],\"body\":\"1\"}\n{\"to\":[\"nobody\"],\"body\":\"2\"}\n".utf8))
        #expect(lines.status == 200 && lines.text.split(separator: "\n").count == 2)
        _ = try await bob.node.send(to: ["alice"], contentType: "application/x", body: .init(bytes: [0, 255]))
        let listed = try await api.call("GET", "/v1/messages?state=unread&from=bob&limit=5")
        let incoming = try #require(try listed.json["messages"]?.elements.first)
        #expect(incoming["body_base64"]?.string == "AP8=")
        let incomingID = try #require(incoming["id"]?.string)
        #expect(try await api.call("POST", "/v1/messages/\(incomingID)/read?from=bob").json["state"]?.string == "read")
        let again = #"{"messages":[{"id":"\#(incomingID)"},{"id":"\#(Self.someID)"}]}"#
        #expect(try await api.call("POST", "/v1/messages/read", json: again).json["marked"]?.number == 0)
        _ = try await bob.node.send(to: ["alice"], contentType: "text/plain", body: .init(string: "more"))
        let more = try #require(try await api.call("GET", "/v1/messages").json["messages"]?.elements.first?["id"]?.string)
        let twice = #"{"messages":[{"id":"\#(more)","from":"bob"},{"id":"\#(more)"}]}"#
        #expect(try await api.call("POST", "/v1/messages/read", json: twice).json["marked"]?.number == 1)
        #expect(try await api.call("POST", "/v1/messages/read", json: #"{"messages":[{"id":"x"}]}"#).code == "invalid-parameter")
        let entry = #"{"id":"\#(Self.someID)"}"#
        for (count, code) in [(1000, nil), (1001, "invalid-parameter")] as [(Int, String?)] {
            let list = Array(repeating: entry, count: count).joined(separator: ",")
            #expect(try await api.call("POST", "/v1/messages/read", json: #"{"messages":[\#(list)]}"#).code == code)
        }
        #expect(try await api.call("GET", "/v1/messages?from=&limit=").json["messages"]?.elements.count == 0)
        // Page by page, up to one that names no next.
        var (path, ids): (String?, [String]) = ("/v1/messages?state=all&limit=1", [])
        while let page = path {
            let answer = try await api.call("GET", page).json
            ids += try #require(answer["messages"]?.elements).compactMap { $0["id"]?.string }
            path = answer["next"]?.string.map { "/v1/messages?state=all&limit=1&after=\($0)" }
        }
        #expect(ids == [incomingID, more])
        #expect(try await api.call("GET", "/v1/messages?after=-1").code == "invalid-parameter")
    }

    /// Queues a message for a peer that was never seen, finds it in the outbox, and cancels it.
    private static func queueForOneAway(_ api: APICaller) async throws {
        let away = String(repeating: "B", count: 51) + "A"
        #expect(try await api.call("PUT", "/v1/peers/\(away)/trust", json: #"{"trust":"trusted"}"#).status == 200)
        let queued = try await api.call("POST", "/v1/messages", json: #"{"to":["\#(away)"],"body":"later","queue":true}"#)
        #expect(queued.status == 202)
        let waiting = try await api.call("GET", "/v1/outbox").json["messages"]?.elements.first { row in
            row["recipients"]?.elements.first?["peer_id"]?.string == away
        }
        let id = try #require(waiting?["message_id"]?.string)
        let cancelled = try await api.call("DELETE", "/v1/outbox/\(id)")
        #expect(try cancelled.json["recipients"]?.elements.first?["error"]?["code"]?.string == "cancelled")
        #expect(try await api.call("DELETE", "/v1/outbox/\(id)").code == "conflict")
        #expect(try await api.call("DELETE", "/v1/outbox/\(Self.someID)").code == "not-found")
        #expect(try await api.call("PUT", "/v1/peers/\(away)/trust", json: #"{"trust":"unknown"}"#).status == 200)
    }

    /// Adds bob to a group, and removes him again.
    private static func talkInAGroup(_ api: APICaller, with bob: APIServer) async throws {
        let made = try await api.call("POST", "/v1/groups", json: #"{"name":"team","unprotected":true}"#)
        #expect(try made.json["unprotected"] == .bool(true))
        let id = try #require(try made.json["id"]?.string)
        let asked = try await api.call("POST", "/v1/groups/\(id)/invitations", json: #"{"peers":["bob"],"timeout_seconds":60}"#)
        #expect(asked.status == 201)
        #expect(try await bob.answer(id, "accept", in: APICaller(path: bob.path)).status == 200)
        let again = try await api.call("POST", "/v1/groups/team/invitations?wait=true", json: #"{"peers":["bob"]}"#)
        #expect(again.status == 200)
        #expect(try await api.call("GET", "/v1/groups").json["groups"]?.elements.count == 1)
        #expect(try await api.call("GET", "/v1/groups/team").json["members"]?.elements.count == 2)
        let sent = try await api.call("POST", "/v1/messages", json: #"{"group":"team","body":"hello"}"#)
        #expect(try sent.json["recipients"]?.elements.map { $0["status"]?.string } == ["delivered"])
        #expect(try await api.call("GET", "/v1/messages?group=team").json["messages"]?.elements.count == 0)
        #expect(try await api.call("PATCH", "/v1/groups/team", json: #"{"name":"crew"}"#).json["name"]?.string == "crew")
        #expect(try await api.call("DELETE", "/v1/groups/crew/members/bob").json["members"]?.elements.count == 1)
        #expect(try await api.call("DELETE", "/v1/groups/crew").status == 204)
    }

    private static func exchangeStreams(_ api: APICaller, with bob: APIServer) async throws {
        let content = Array("a stream\n".utf8)
        let reader = Task {
            let content = try await bob.node.acceptNextStream(name: "x")
            while try await content.next() != nil {}
            try await content.finish()
        }
        let type = "Content-Type: application/octet-stream"
        let sent = try await api.call("POST", "/v1/streams?to=bob&name=x", [type], body: content)
        #expect(sent.status == 200 && sent.text.contains("\"transferred\":\(content.count)"))
        try await reader.value
        let id = try #require(try sent.json["id"]?.string)
        #expect(try await api.call("GET", "/v1/streams").json["streams"]?.elements.first?["state"]?.string == "closed")
        #expect(try await api.call("GET", "/v1/streams/\(id)").json["name"]?.string == "x")
        #expect(try await api.call("GET", "/v1/streams/\(id)/content").code == "conflict")
        #expect(try await api.call("DELETE", "/v1/streams/\(id)").status == 204)
        #expect(try await api.call("DELETE", "/v1/streams/\(id)").status == 404)
        #expect(try await api.call("POST", "/v1/streams?to=bob&name=a%01", [type], body: content).code == "invalid-parameter")
        #expect(try await api.call("GET", "/v1/streams/next/content?timeout_seconds=0").code == "timed-out")
        // bob opens two streams. One caller of alice takes the next stream, and the other takes a stream by its id.
        for path in ["next", nil] {
            let body = AsyncThrowingStream<ByteBuffer, any Error> { feed in
                feed.yield(ByteBuffer(bytes: content))
                feed.finish()
            }
            let writer = Task { try await bob.node.openStream(to: "alice", name: "y", body: body) }
            let id = try await Self.waitingStream(api)
            #expect(try await api.call("GET", "/v1/streams/\(path ?? id)/content").body == content)
            #expect(try await writer.value.error == nil)
        }
        let silent = AsyncThrowingStream<ByteBuffer, any Error> { _ in }
        let writer = Task { try await bob.node.openStream(to: "alice", name: "z", body: silent) }
        let aborted = try await api.call("DELETE", "/v1/streams/\(try await Self.waitingStream(api))")
        #expect(try aborted.json["error"]?["code"]?.string == "cancelled")
        await #expect { try await writer.value } throws: { ($0 as? EarshotError)?.code == .cancelled }
    }

    /// Returns the id of the stream that waits to be accepted, once there is one.
    private static func waitingStream(_ api: APICaller) async throws -> String {
        while true {
            let rows = try await api.call("GET", "/v1/streams").json["streams"]?.elements ?? []
            if let row = rows.first(where: { $0["state"]?.string == "opening" }) { return try #require(row["id"]?.string) }
        }
    }

    private static func exchangeFiles(_ api: APICaller, with bob: APIServer) async throws {
        let content = Array("a file\n".utf8)
        let type = "Content-Type: application/octet-stream"
        let sent = try await api.call("POST", "/v1/resources?to=bob&name=note.txt", [type], body: content)
        #expect(sent.status == 200)
        let queued = try await api.call("POST", "/v1/resources?to=bob&name=later.txt&queue=true&digest=sha256", [type], body: content)
        #expect(queued.status == 202)
        let odd = try await api.call("POST", "/v1/resources?to=bob&name=note.txt&digest=md5", [type], body: content)
        #expect(odd.status == 400 && odd.code == "invalid-parameter")
        let path = "\(bob.place)/from-bob.txt"
        try Data(content).write(to: URL(fileURLWithPath: path))
        _ = try await bob.node.sendResource(to: ["alice"], path: path)
        let id = try #require(try await Self.incoming("offered", api)["id"]?.string)
        let accepted = try await api.call("POST", "/v1/resources/\(id)/response", json: #"{"decision":"accept"}"#)
        #expect(accepted.status == 200)
        _ = try await Self.incoming("completed", api)
        #expect(try await api.call("GET", "/v1/resources/\(id)").json["name"]?.string == "from-bob.txt")
        #expect(try await api.call("GET", "/v1/resources/\(id)/content").body == content)
        let part = try await api.call("GET", "/v1/resources/\(id)/content", ["Range: bytes=2-5"])
        #expect(part.status == 206 && part.body == Array(content[2...5]))
        let outside = try await api.call("GET", "/v1/resources/\(id)/content", ["Range: bytes=\(content.count)-"])
        #expect(outside.status == 416)
        #expect(outside.fields["content-range"] == "bytes */\(content.count)")
        #expect(try await api.call("DELETE", "/v1/resources/\(id)/content").status == 204)
        #expect(try await api.call("GET", "/v1/resources/\(id)/content").code == "conflict")
        #expect(try await api.call("DELETE", "/v1/resources/\(id)").status == 204)
        #expect(try await api.call("DELETE", "/v1/resources/\(id)").status == 404)
        // A transfer that the receiver cannot have finished yet is cancelled.
        let large = "\(bob.place)/large"
        #expect(FileManager.default.createFile(atPath: large, contents: nil))
        let handle = try #require(FileHandle(forWritingAtPath: large))
        // Within the quarter of the quota that one peer may take.
        try handle.truncate(atOffset: 4 << 30)
        let offered = try await api.call("POST", "/v1/resources", json: #"{"to":["bob"],"path":"\#(large)"}"#)
        #expect(offered.status == 202)
        let running = try #require(try offered.json["resources"]?.elements.first?["id"]?.string)
        let cancelled = try await api.call("DELETE", "/v1/resources/\(running)")
        #expect(try cancelled.json["state"]?.string == "cancelled")
    }

    /// The incoming resource, once it has the state.
    private static func incoming(_ state: String, _ api: APICaller) async throws -> JSONValue {
        while true {
            let rows = try await api.call("GET", "/v1/resources").json["resources"]?.elements ?? []
            if let row = rows.first(where: { $0["direction"]?.string == "incoming" && $0["state"]?.string == state }) { return row }
        }
    }

    private static func part(_ api: APICaller) async throws {
        let sessions = try await api.call("GET", "/v1/sessions").json["sessions"]
        let session = try #require(sessions?.elements.first?["id"]?.string)
        #expect(try await api.call("DELETE", "/v1/sessions/\(session)").status == 204)
        #expect(try await api.call("DELETE", "/v1/sessions/\(session)").status == 404)
        // Trusted since the digits were equal, bob would not be asked about.
        #expect(try await api.call("PUT", "/v1/peers/bob/trust", json: #"{"trust":"unknown"}"#).status == 200)
    }

    /// bob invites alice, and alice answers. Then alice invites carol, and cancels the invitation.
    private static func answer(_ alice: APIServer, _ bob: APIServer, _ seen: SeenAnswers) async throws {
        // bob learns a moment later that alice has left. Until then there is no reason for an invitation.
        let parted = bob.node.events.subscribe(since: 0)
        for await event in parted {
            if case .sessionChanged(_, ended: true) = event.kind { break }
        }
        let subscription = alice.node.events.subscribe()
        _ = try await bob.node.invite("alice", context: [1], timeout: nil)
        var invitation: Invitation?
        for await event in subscription {
            if case .invitationReceived(let received) = event.kind {
                invitation = received
                break
            }
        }
        let id = try #require(invitation).id
        let api = APICaller(path: alice.path, seen: seen)
        let wrong = try await api.call("POST", "/v1/invitations/\(id)/response", json: #"{"decision":"maybe"}"#)
        #expect(wrong.code == "invalid-parameter")
        let answered = try await api.call("POST", "/v1/invitations/\(id)/response", json: #"{"decision":"reject"}"#)
        #expect(try answered.json["state"]?.string == "declined")
        let again = try await api.call("POST", "/v1/invitations/\(id)/response", json: #"{"decision":"accept"}"#)
        #expect(again.code == "conflict")
        // carol does not answer automatically, so alice can cancel her invitation.
        let known = try [ConfiguredPeer("127.0.0.1:\(alice.port)")]
        try await APIServer.with("carol", configure: { $0.configuredPeers = known }) { _ in
            let events = alice.node.events.subscribe(since: 0)
            for await event in events {
                if case .peerFound(let peer) = event.kind, peer.name == "carol" { break }
            }
            let asked = try await api.call("POST", "/v1/invitations", json: #"{"peer":"carol"}"#)
            #expect(asked.status == 201)
            let id = try #require(try asked.json["id"]?.string)
            #expect(try await api.call("DELETE", "/v1/invitations/\(id)").json["state"]?.string == "cancelled")
        }
    }

    private static func readEvents(_ alice: APIServer, _ seen: SeenAnswers) async throws {
        for accept in ["application/x-ndjson", "text/event-stream"] {
            try await APIConnection.with(alice.path, seen: seen) { call in
                try await call.ask("GET", "/v1/events?since=0", ["Accept: \(accept)"])
                let (status, fields) = try await call.head()
                var body: [UInt8] = []
                while body.split(separator: UInt8(ascii: "\n")).count < 12 { body += try #require(try await call.chunk()) }
                let faults = APIDocument.shared.faults(
                    "GET", "/v1/events", .init(status: status, contentType: fields["content-type"], allow: nil, body: body))
                #expect(faults == [])
                seen.insert("GET", "/v1/events", status)
            }
        }
    }
}
