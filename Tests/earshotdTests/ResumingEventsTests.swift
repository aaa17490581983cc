import EarshotClient
import Foundation
import Synchronization
import Testing

@testable import Earshot
@testable import earshotd

/// Readers of events that resume: over a restart of the daemon, and after they were dropped for being too slow.
@Suite(.timeLimit(.minutes(2))) struct ResumingEventsTests {
    private static func makeEvent(_ server: APIServer, _ error: String? = nil) {
        server.node.events.append(.discoveryChanged(DiscoveryStatus(backend: .avahi, state: .unavailable, error: error)), at: Date())
    }

    /// The next value; `nil` at the end.
    private static func next<Value: Sendable>(_ stream: AsyncStream<Value>) async -> Value? {
        for await value in stream { return value }
        return nil
    }

    /// Both a reader that has had events and one that has had none learn of the restart, and lose no event of the new run silently.
    @Test(arguments: [0, 3]) func aReaderOutlivesTheDaemon(_ before: Int) async throws {
        try await APIServer.with { first in
            try await ControlClient.with(socketPath: first.path) { client in
                let (told, teller) = AsyncStream<ControlInterruption>.makeStream()
                let (read, reading) = AsyncStream<ControlAPI.Event>.makeStream()
                let events = try await client.events { teller.yield($0) }
                let reader = Task { for try await event in events { reading.yield(event.value) } }
                defer { reader.cancel() }
                for _ in 0..<before { Self.makeEvent(first) }
                for _ in 0..<before {
                    let event = await Self.next(read)
                    #expect(event?.epoch == first.node.events.epoch)
                }
                await first.stop()
                // While no daemon is there, the reader has said so and tries again.
                let interruption = await Self.next(told)
                #expect(interruption == .daemonLeft)
                try await APIServer.with(at: first.place) { second in
                    let next = await Self.next(read)
                    let gap = try #require(next)
                    #expect(gap.type == .gap && gap.epoch == second.node.events.epoch && gap.to == gap.seq)
                    Self.makeEvent(second)
                    let later = await Self.next(read)
                    #expect(later?.seq == gap.seq + 1)
                    reader.cancel()
                    teller.finish()
                    let again = await Self.next(told)
                    #expect(again == nil, "said once")
                }
            }
        }
    }

    /// The daemon goes on; the reader is told that it was too slow, and loses nothing that the daemon still has.
    @Test func aSlowReaderIsToldSoAndResumes() async throws {
        let time = ManualTime()
        try await APIServer.with(readers: EventReaders { time.now }) { server in
            try await ControlClient.with(socketPath: server.path) { client in
                let told = Mutex<[ControlInterruption]>([])
                let events = try await client.events { interruption in told.withLock { $0.append(interruption) } }
                let text = String(repeating: "x", count: 64 * 1024)
                while server.readers.counts.readers > 0 {
                    Self.makeEvent(server, text)
                    time.advance(by: .seconds(1))
                    server.readers.dropStalled()
                    // Only paces it.
                    try await Task.sleep(for: .milliseconds(1))
                }
                Self.makeEvent(server, "the last")
                var last: UInt64?
                for try await event in events {
                    let first = event.value.type == .gap ? event.value.from : event.value.seq
                    if let last { #expect(first == last + 1) }
                    last = event.value.seq
                    if event.value.discovery?.error == "the last" { break }
                }
                #expect(told.withLock { $0 } == [.readerTooSlow])
            }
        }
    }

    /// Only a reader that asked for it resumes.
    @Test func withoutAHandlerTheEndIsAnError() async throws {
        try await APIServer.with { server in
            try await ControlClient.with(socketPath: server.path) { client in
                let events = try await client.events()
                let reader = Task { for try await _ in events {} }
                await server.stop()
                let error = await #expect(throws: ControlError.self) { try await reader.value }
                guard case .lost? = error else {
                    Issue.record("\(String(describing: error))")
                    return
                }
            }
        }
    }

    @Test func aDaemonThatStaysAwayIsAnErrorWhereTheReaderSaysSo() async throws {
        try await APIServer.with { server in
            try await ControlClient.with(socketPath: server.path) { client in
                let told = Mutex<[ControlInterruption]>([])
                let events = try await client.events(patience: .zero) { interruption in told.withLock { $0.append(interruption) } }
                await server.stop()
                let error = await #expect(throws: ControlError.self) { for try await _ in events {} }
                guard case .unreachable? = error else {
                    Issue.record("\(String(describing: error))")
                    return
                }
                #expect(told.withLock { $0 } == [.daemonLeft])
            }
        }
    }
}
