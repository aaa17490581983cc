import EarshotSafety
import EarshotWire
import Foundation
import Logging
import NIOCore
import Testing

@testable import Earshot
@testable import EarshotCore

/// A node that ends with its program: nothing is on disk, and no message is acknowledged before the program has it.
@Suite(.timeLimit(.minutes(1))) struct NodeEphemeralTests {
    struct Note: TypedMessage, Hashable {
        static let contentType = "application/vnd.example.note+json"
        var text: String
    }

    private static func ephemeral(_ configuration: inout Node.Configuration) {
        configuration = .ephemeral(displayName: configuration.displayName, serviceType: configuration.serviceType)
    }

    private func with(_ body: (_ alice: TestNode, _ bob: TestNode) async throws -> Void) async throws {
        let (alice, bob) = try await pair(configureAlice: Self.ephemeral, configureBob: Self.ephemeral)
        let result: Result<Void, any Error>
        do { result = .success(try await body(alice, bob)) } catch { result = .failure(error) }
        await alice.stop()
        await bob.stop()
        try result.get()
    }

    /// Waits until a message with this text is in the node's inbox, without taking it.
    private func arrived(_ text: String, at node: TestNode) async throws -> Message {
        try await node.event { kind in
            if case .messageReceived(let message) = kind, String(buffer: message.body).contains(text) { message } else { nil }
        }
    }

    private func status(of id: MessageID, at node: TestNode) async throws -> Message.Status? {
        try await node.node.message(id, from: nil).recipients.first?.status
    }

    @Test func aMessageIsAcknowledgedWhenAPageHoldsIt() async throws {
        try await self.with { alice, bob in
            let id = MessageID.random()
            let sending = Task { try await alice.send("hello", to: bob, id: id) }
            _ = try await self.arrived("hello", at: bob)
            // The event exists. A receipt for the sender would follow this answer on the same connection.
            let answering = Task { try await bob.send("answer", to: alice) }
            _ = try await self.arrived("answer", at: alice)
            #expect(try await self.status(of: id, at: alice) == .sent)
            #expect(try await bob.inbox() == ["hello"])
            #expect(try await sending.value.recipients.map(\.status) == [.delivered])
            #expect(try await alice.inbox() == ["answer"])
            #expect(try await answering.value.recipients.map(\.status) == [.delivered])
        }
    }

    /// A reader fetches many messages at once. The program takes them one by one.
    @Test func aReaderAcknowledgesWhatItGives() async throws {
        try await self.with { alice, bob in
            let ids = [MessageID.random(), MessageID.random()]
            let sending = ids.enumerated().map { number, id in
                Task {
                    try await alice.node.send(
                        to: ["bob"], contentType: Note.contentType, body: ByteBuffer(string: #"{"text":"\#(number)"}"#), id: id)
                }
            }
            for number in 0..<2 { _ = try await self.arrived("\(number)", at: bob) }
            var reader = bob.node.messages(of: Note.self).makeAsyncIterator()
            let first = try #require(try await reader.next())
            let index = try #require(ids.firstIndex(of: first.id))
            #expect(try await sending[index].value.recipients.map(\.status) == [.delivered])
            #expect(try await self.status(of: ids[1 - index], at: alice) == .sent)
            #expect(try await reader.next()?.id == ids[1 - index])
            #expect(try await sending[1 - index].value.recipients.map(\.status) == [.delivered])
        }
    }

    @Test func whatTheProgramNeverTookIsNotSaidToBeDelivered() async throws {
        try await self.with { alice, bob in
            let id = MessageID.random()
            let sending = Task { try await alice.send("lost", to: bob, id: id) }
            _ = try await self.arrived("lost", at: bob)
            await bob.stop()
            try await alice.event { kind -> Void? in
                if case .sessionChanged(let session, ended: false) = kind, session.members.first?.state != .connected { () } else { nil }
            }
            #expect(try await self.status(of: id, at: alice)?.isFinal == false)
            await alice.stop()
            _ = await sending.result
        }
    }

    /// By its id, for a program that uses events.
    @Test func aMessageThatIsMarkedReadWasTaken() async throws {
        try await self.with { alice, bob in
            let (one, two) = (MessageID.random(), MessageID.random())
            let first = Task { try await alice.send("one", to: bob, id: one) }
            _ = try await self.arrived("one", at: bob)
            #expect(try await bob.node.markRead(one, from: nil).readState == .read)
            #expect(try await [.delivered, .read].contains(first.value.recipients.first?.status))
            let second = Task { try await alice.send("two", to: bob, id: two) }
            _ = try await self.arrived("two", at: bob)
            #expect(try await bob.node.markRead([(id: two, from: nil)]) == 1)
            #expect(try await [.delivered, .read].contains(second.value.recipients.first?.status))
            // The read message is deleted but remembered, because its sender may send it again.
            #expect(try await bob.inbox().isEmpty)
            _ = try await alice.send("one", to: bob, id: one)
            #expect(try await bob.inbox().isEmpty)
        }
    }

    /// Also about invitations from trusted peers.
    @Test func theProgramDecidesAboutInvitations() async throws {
        let alice = try await TestNode("alice")
        let bob = try await TestNode("bob", configure: Self.ephemeral)
        alice.sees(bob)
        bob.sees(alice)
        try await alice.found(bob)
        try await bob.found(alice)
        _ = try await bob.node.setTrust(.trusted, for: alice.node.id.description)
        let invitation = try await alice.node.invite("bob", context: Array("dinner".utf8), timeout: nil)
        let received = try await bob.invitation()
        #expect(received.context == Array("dinner".utf8) && received.state == .pending)
        _ = try await bob.node.respond(to: received.id, .reject, always: false)
        #expect(try await alice.node.outcome(of: invitation.id).state == .declined)
        await alice.stop()
        await bob.stop()
    }

    @Test func anIdentityThatTheProgramKeeps() async throws {
        let pem = try Identity.makePEM()
        let identity = try Identity(pem: pem)
        for _ in 0..<2 {
            var configuration = Node.Configuration.ephemeral(displayName: try DisplayName("x"), serviceType: try ServiceType("earshot"))
            configuration.identity = try Identity(pem: pem)
            #expect(try await Node(configuration: configuration, discovery: nil, logger: Logger(label: "x")).id == identity.id)
        }
        #expect(throws: EarshotError.self) { try Identity(pem: String(pem.dropLast(200))) }
        #expect(throws: EarshotError.self) { try Identity(pem: "") }
    }

    @Test func anIdentityAndTheNamesOfOneAreTooMuch() async throws {
        var configuration = Node.Configuration.ephemeral(displayName: try DisplayName("x"), serviceType: try ServiceType("earshot"))
        configuration.identity = try Identity(pem: try Identity.makePEM())
        configuration.certificate = "/etc/ssl/x.pem"
        let error = await #expect(throws: EarshotError.self) {
            _ = try await Node(configuration: configuration, discovery: nil, logger: Logger(label: "x"))
        }
        #expect(error?.code == .invalidParameter)
    }

    @Test func filesComeToADirectoryThatGoesWithTheNode() async throws {
        let source = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-ephemeral-\(UUID()).txt")
        try Data("content".utf8).write(to: source)
        defer { try? FileManager.default.removeItem(at: source) }
        var spool = ""
        do {
            let (alice, bob) = try await pair(configureAlice: Self.ephemeral, configureBob: Self.ephemeral)
            _ = try await alice.node.sendResource(to: ["bob"], path: source.path)
            let row = try await bob.event { kind in
                if case .resourceFinished(let row) = kind, row.direction == .incoming { row } else { nil }
            }
            #expect(row.state == .completed)
            let content = try await bob.node.resourceContent(row.id).read(at: 0, count: 100)
            #expect(String(buffer: content) == "content")
            spool = await bob.node.spool.directory.path
            #expect(FileManager.default.fileExists(atPath: spool))
            let status = await bob.node.status()
            #expect(status.stateDirectory == nil)
            await alice.stop()
            await bob.stop()
        }
        // The last thread with a reference releases the directory.
        try await eventually("the directory is gone") { !FileManager.default.fileExists(atPath: spool) }
    }

    // MARK: The temporary directory

    private func names(_ directory: StateDirectory) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory.path)
    }

    @Test func aTemporaryDirectoryGoesWithItsOwner() throws {
        let parent = try StateDirectory()
        do {
            let one = try TemporaryDirectory(below: parent.path)
            let two = try TemporaryDirectory(below: parent.path)
            try Data("x".utf8).write(to: URL(fileURLWithPath: one.path + "/file"))
            #expect(try self.names(parent).count == 2 && one.path != two.path)
            #expect(try FileManager.default.attributesOfItem(atPath: one.path)[.posixPermissions] as? NSNumber == 0o700)
        }
        #expect(try self.names(parent).isEmpty)
    }

    @Test func whatAKilledProcessLeftGoesWithTheNextOne() throws {
        let parent = try StateDirectory()
        let left = "\(parent.path)/earshot-\(geteuid())-AAAAAA"
        let others = ["earshot-\(geteuid() + 1)-AAAAAA", "something"]
        for path in [left + "/spool/complete"] + others.map({ "\(parent.path)/\($0)" }) {
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        }
        try Data("x".utf8).write(to: URL(fileURLWithPath: left + "/spool/complete/x"))
        // A file with such a name does not belong to Earshot.
        let file = "\(parent.path)/earshot-\(geteuid())-BBBBBB"
        try Data("x".utf8).write(to: URL(fileURLWithPath: file))
        let one = try TemporaryDirectory(below: parent.path)
        let names = try self.names(parent)
        withExtendedLifetime(one) {}
        #expect(!FileManager.default.fileExists(atPath: left))
        #expect(names.count == 4)
    }

    @Test func withoutAPlaceThereIsAnErrorThatNamesIt() throws {
        let error = #expect(throws: EarshotError.self) { try TemporaryDirectory(below: "/nowhere/at/all") }
        #expect(error?.code == .storage && error?.message.contains("/nowhere/at/all") == true)
    }
}
