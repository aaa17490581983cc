import EarshotClient
import EarshotWire
import Foundation
import Testing

@testable import Earshot
@testable import earshotd

/// Values from one program to another, by way of their machines' daemons.
@Suite(.timeLimit(.minutes(2))) struct TypedMessagesTests {
    struct Reading: TypedMessage, Hashable {
        static let contentType = "application/vnd.example.reading+json"
        var sensor: String
        var celsius: Double
    }

    struct Command: TypedMessage, Hashable {
        static let contentType = "application/vnd.example.command+json"
        var name: String
    }

    private func pair(_ body: (_ alice: ControlClient, _ bob: ControlClient) async throws -> Void) async throws {
        try await APIServer.pair { alice, bob in
            try await alice.agree(with: bob)
            try await ControlClient.with(socketPath: alice.path) { client in
                try await ControlClient.with(socketPath: bob.path) { try await body(client, $0) }
            }
        }
    }

    @Test func valuesOfSeveralTypes() async throws {
        try await self.pair { alice, bob in
            let receipt = try await alice.send(Reading(sensor: "s", celsius: 21.5), to: "bob")
            #expect(receipt.recipients.map(\.status) == [.known(.delivered)])
            try await alice.send(Command(name: "stop"), to: .all, queue: true)
            let broken = ControlAPI.MessageRequest(to: .peers(["bob"]), body: Array("{}".utf8), contentType: Command.contentType)
            _ = try await alice.send(broken)
            _ = try await alice.send(ControlAPI.MessageRequest(to: .peers(["bob"]), body: Array("hello".utf8), contentType: "text/plain"))
            var reader = bob.messages(of: Reading.self, Command.self).makeAsyncIterator()
            let first = try #require(try await reader.next())
            #expect(first.content.value(as: Reading.self) == Reading(sensor: "s", celsius: 21.5))
            #expect(first.sender.name == "alice" && first.id == receipt.messageID)
            #expect(try await reader.next()?.content.value(as: Command.self) == Command(name: "stop"))
            guard case .bytes(let body, .undecodable(let problem))? = try await reader.next()?.content else { throw CancellationError() }
            #expect(body == Array("{}".utf8) && problem.description == "`name` is missing")
            guard case .bytes(Array("hello".utf8), .otherType)? = try await reader.next()?.content else { throw CancellationError() }
        }
    }

    /// A message is read when the next one is asked for: a program that dies before that gets it again.
    @Test func whatWasNotDealtWithComesAgain() async throws {
        try await self.pair { alice, bob in
            for number in 0..<3 { try await alice.send(Command(name: "\(number)"), to: "bob") }
            for number in 0..<3 {
                // A reader that dies with the message in its hands, and the one after it.
                for _ in 0..<2 {
                    var reader = bob.messages(of: Command.self).makeAsyncIterator()
                    #expect(try await reader.next()?.content.value(as: Command.self) == Command(name: "\(number)"))
                }
                var reader = bob.messages(of: Command.self).makeAsyncIterator()
                _ = try await reader.next()
                guard number < 2 else { break }
                #expect(try await reader.next()?.content.value(as: Command.self) == Command(name: "\(number + 1)"))
                #expect(try await bob.messages(limit: 10).value.messages.count == 2 - number)
            }
        }
    }

    /// More than a page, while the reader waits, and of one peer alone.
    @Test func theyComeInTheirOrderWhileTheReaderWaits() async throws {
        let count = 150
        try await self.pair { alice, bob in
            async let received = {
                var names: [String] = []
                for try await message in bob.messages(of: Command.self, from: "alice") {
                    names.append(try #require(message.content.value(as: Command.self)).name)
                    if names.count == count { break }
                }
                return names
            }()
            for number in 0..<count { try await alice.send(Command(name: "\(number)"), to: "bob") }
            #expect(try await received == (0..<count).map(String.init))
            let error = await #expect(throws: ControlError.self) {
                var reader = bob.messages(of: Command.self, from: "nobody").makeAsyncIterator()
                _ = try await reader.next()
            }
            guard case .problem(let problem)? = error else { throw CancellationError() }
            #expect(problem.code == "unknown-peer")
        }
    }

    /// Unreliable messages are in no inbox: they come to a reader that waits.
    @Test func unreliableOnesComeOnce() async throws {
        try await self.pair { alice, bob in
            try await alice.send(Command(name: "first"), to: "bob")
            var reader = bob.messages(of: Command.self).makeAsyncIterator()
            // Subscribed from here on.
            _ = try await reader.next()
            let body = try Command(name: "now").encoded()
            _ = try await alice.send(
                ControlAPI.MessageRequest(to: .peers(["bob"]), body: body, contentType: Command.contentType, mode: .unreliable))
            let message = try #require(try await reader.next())
            #expect(message.content.value(as: Command.self) == Command(name: "now") && message.message.mode == .unreliable)
            #expect(try await bob.messages(limit: 10).value.messages.isEmpty)
        }
    }

    @Test func aReaderThatIsCancelledEnds() async throws {
        try await self.pair { alice, bob in
            try await alice.send(Command(name: "first"), to: "bob")
            let (isReading, read) = AsyncStream<Void>.makeStream()
            let reading = Task {
                var reader = bob.messages(of: Command.self).makeAsyncIterator()
                _ = try await reader.next()
                read.finish()
                return try await reader.next() == nil
            }
            for await _ in isReading {}
            reading.cancel()
            // While it says that the first one is read that is an error, and afterwards the end.
            switch await reading.result {
            case .success(let isOver): #expect(isOver)
            case .failure(let error): #expect(error as? ControlError == .cancelled)
            }
        }
    }

    @Test func whatIsNoJSONIsNotSent() async throws {
        try await self.pair { alice, _ in
            let error = await #expect(throws: ControlError.self) {
                try await alice.send(Reading(sensor: "s", celsius: .infinity), to: "bob")
            }
            guard case .malformed(let words)? = error else { throw CancellationError() }
            #expect(words.hasPrefix("the message: the value cannot be JSON: "))
        }
    }
}
