import EarshotWire
import NIOCore
import Testing

@testable import Earshot

/// Values from one program to another, each of them a peer itself.
@Suite(.timeLimit(.minutes(1))) struct NodeTypedMessageTests {
    struct Reading: TypedMessage, Hashable {
        static let contentType = "application/vnd.example.reading+json"
        var sensor: String
        var celsius: Double
    }

    struct Command: TypedMessage, Hashable {
        static let contentType = "application/vnd.example.command+json"
        var name: String
    }

    private func with(_ body: (_ alice: TestNode, _ bob: TestNode) async throws -> Void) async throws {
        let (alice, bob) = try await pair()
        let result: Result<Void, any Error>
        do { result = .success(try await body(alice, bob)) } catch { result = .failure(error) }
        await alice.stop()
        await bob.stop()
        try result.get()
    }

    @Test func valuesOfSeveralTypes() async throws {
        try await self.with { alice, bob in
            let sent = try await alice.node.send(Reading(sensor: "s", celsius: 21.5), to: "bob")
            #expect(sent.recipients.map(\.status) == [.delivered])
            try await alice.node.send(Command(name: "stop"), to: .all, queue: true)
            _ = try await alice.node.send(to: ["bob"], contentType: Command.contentType, body: ByteBuffer(string: "{}"))
            _ = try await alice.node.send(to: ["bob"], contentType: "text/plain", body: ByteBuffer(string: "hello"))
            var reader = bob.node.messages(of: Reading.self, Command.self).makeAsyncIterator()
            let first = try #require(try await reader.next())
            #expect(first.content.value(as: Reading.self) == Reading(sensor: "s", celsius: 21.5))
            #expect(first.sender == alice.node.id && first.id == sent.id)
            #expect(try await reader.next()?.content.value(as: Command.self) == Command(name: "stop"))
            guard case .bytes(let body, .undecodable(let problem))? = try await reader.next()?.content else { throw CancellationError() }
            #expect(body == Array("{}".utf8) && problem.description == "`name` is missing")
            guard case .bytes(Array("hello".utf8), .otherType)? = try await reader.next()?.content else { throw CancellationError() }
        }
    }

    /// A message is read when the next one is requested. A program that crashes before that receives it again.
    @Test func whatWasNotDealtWithComesAgain() async throws {
        try await self.with { alice, bob in
            for number in 0..<2 { try await alice.node.send(Command(name: "\(number)"), to: "bob") }
            for number in 0..<2 {
                for _ in 0..<2 {
                    var reader = bob.node.messages(of: Command.self, from: "alice").makeAsyncIterator()
                    #expect(try await reader.next()?.content.value(as: Command.self) == Command(name: "\(number)"))
                }
                try await self.readOne(of: bob)
            }
            #expect(try await bob.node.messages(state: .unread, from: nil, limit: 10).isEmpty)
        }
    }

    /// Reads one message, and marks it handled by requesting another one that does not arrive.
    private func readOne(of node: TestNode) async throws {
        let reader = Task {
            var messages = node.node.messages(of: Command.self).makeAsyncIterator()
            _ = try await messages.next()
            withUnsafeCurrentTask { $0?.cancel() }
            #expect(try await messages.next() == nil)
        }
        try await reader.value
    }

    @Test func theyComeInTheirOrderWhileTheReaderWaits() async throws {
        try await self.with { alice, bob in
            let reader = Task {
                var names: [String] = []
                for try await message in bob.node.messages(of: Command.self, from: alice.node.id.description) {
                    guard let command = message.content.value(as: Command.self) else { continue }
                    names.append(command.name)
                    if command.name == "end" { break }
                }
                return names
            }
            for number in 0..<100 { try await alice.node.send(Command(name: "\(number)"), to: "bob") }
            try await alice.node.send(Command(name: "end"), to: "bob")
            #expect(try await reader.value == (0..<100).map(String.init) + ["end"])
        }
    }

    @Test func whatCannotBeWrittenIsNotSent() async throws {
        try await self.with { alice, bob in
            let error = await #expect(throws: EarshotError.self) {
                try await alice.node.send(Reading(sensor: "s", celsius: .infinity), to: "bob")
            }
            #expect(error?.code == .invalidParameter)
            let inbox = try await bob.inbox()
            #expect(inbox.isEmpty)
        }
    }
}
