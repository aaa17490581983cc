import Earshot
import EarshotWire
import Foundation
import NIOCore
import Testing

@testable import earshotd

/// A file arrives as a request's body, and its transfer ends meanwhile. The caller is answered immediately, its connection is closed in
/// order, and the daemon continues to serve. This once ended the process, because two readers shared the connection.
@Suite(.timeLimit(.minutes(2))) struct BodyEndTests {
    /// The cause of the transfer's end.
    enum EarlyEnd: CaseIterable {
        case receiverCancels, callerDeletes, receiverLeaves, senderLeaves, receiverBlocks, stop
    }

    private static let size = 50_000_000

    @Test(arguments: EarlyEnd.allCases) func anUploadThatEndsEarly(_ kind: EarlyEnd) async throws {
        try await APIServer.pair { alice, bob in
            let api = APICaller(path: alice.path)
            #expect(try await api.call("POST", "/v1/invitations?wait=true", json: #"{"peer":"bob"}"#).status == 200)
            try await APIConnection.with(alice.path) { conversation in
                let fields = ["Content-Type: application/octet-stream", "Content-Length: \(Self.size)"]
                try await conversation.ask("POST", "/v1/resources?to=bob&name=big", fields)
                try await conversation.say(String(repeating: "x", count: 1000))
                let id = try await Self.begun(bob)
                try await Self.end(id, kind, alice, bob)
                // The answer is immediate: the caller sends no more of its body, and nothing moves the clock of the daemon's limits.
                let answer = try await conversation.answer()
                switch kind {
                case .receiverCancels, .callerDeletes: #expect(answer.status == 409 && answer.code == "cancelled")
                case .receiverLeaves, .senderLeaves, .receiverBlocks: #expect(answer.status == 409 && answer.code == "not-connected")
                case .stop: #expect(answer.status == 503 && answer.code == "unavailable")
                }
                #expect(answer.fields["connection"] == "close")
                #expect(try await conversation.hasEnded())
            }
            #expect(try await api.call("GET", "/v1/status").status == 200)
            #expect(await alice.node.resources().allSatisfy { $0.state != .transferring && $0.state != .offered })
        }
    }

    /// Returns the id of the receiver's row, after a part of the file has arrived.
    private static func begun(_ bob: APIServer) async throws -> ResourceID {
        let events = bob.node.events.subscribe(since: 0)
        for await event in events {
            if case .resourceProgress(let row) = event.kind { return row.id }
        }
        throw EarshotError(.notFound, "nothing has come")
    }

    private static func end(_ id: ResourceID, _ kind: EarlyEnd, _ alice: APIServer, _ bob: APIServer) async throws {
        switch kind {
        case .receiverCancels: _ = try await bob.node.removeResource(id)
        case .callerDeletes: #expect(try await APICaller(path: alice.path).call("DELETE", "/v1/resources/\(id)").status == 200)
        case .receiverLeaves: for session in await bob.node.sessions() { try await bob.node.leave(session.id) }
        case .senderLeaves: for session in await alice.node.sessions() { try await alice.node.leave(session.id) }
        case .receiverBlocks: _ = try await bob.node.setTrust(.blocked, for: "alice")
        case .stop: alice.node.endStreams()
        }
    }
}
