import EarshotClient
import Foundation
import Testing

@testable import Earshot
@testable import earshotd

/// The events that the client's reader receives.
@Suite(.timeLimit(.minutes(2))) struct ClientEventsTests {
    @Test func eventsComeInOrderUntilTheReaderHasEnough() async throws {
        try await APIServer.pair { alice, bob in
            try await ControlClient.with(socketPath: alice.path) { client in
                let events = try await client.events(since: 0)
                try await alice.agree(with: bob)
                var numbers: [UInt64] = []
                for try await event in events {
                    #expect(event.unreadable.isEmpty)
                    numbers.append(event.value.seq)
                    if event.value.type == .sessionChanged, event.value.session?.members.first?.state == .known(.connected) { break }
                }
                #expect(numbers == Array(1...UInt64(numbers.count)))
            }
        }
    }

    /// A program that ends its task waits for no event that may never come.
    @Test func cancellationEndsTheWait() async throws {
        try await APIServer.with { server in
            try await ControlClient.with(socketPath: server.path) { client in
                let events = try await client.events()
                let reader = Task { for try await _ in events {} }
                reader.cancel()
                let error = await #expect(throws: ControlError.self) { try await reader.value }
                guard case .cancelled? = error else {
                    Issue.record("\(String(describing: error))")
                    return
                }
            }
        }
    }

    /// Calls of a program that wait as long as it runs do not delay its other calls.
    @Test func manyReadersHoldUpNoOtherCall() async throws {
        try await APIServer.with { server in
            try await ControlClient.with(socketPath: server.path) { client in
                var readers: [ControlEvents] = []
                while readers.count < 16 { readers.append(try await client.events()) }
                #expect(try await client.status().peerID == server.node.id)
                // The readers must live until here, because releasing one ends its call.
                #expect(readers.count == 16)
            }
        }
    }
}
