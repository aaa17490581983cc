import APIDocument
@testable import Earshot
import EarshotClient
import Foundation
import NIOCore
import Synchronization
import Testing

@testable import earshotd

/// The stream of events on a real socket: its first event, its format, and the readers that are dropped.
@Suite struct EventStreamTests {
    private typealias Conversation = APIConnection.Conversation

    /// Returns the next event of a stream of lines.
    private static func event(_ call: inout Conversation) async throws -> JSONValue {
        let chunk = try #require(try await call.chunk())
        #expect(APIDocument.shared.faults(chunk, as: "Event") == [])
        return try JSONValue(parsing: chunk)
    }

    /// Causes an event.
    private static func makeEvent(_ server: APIServer) {
        server.node.events.append(.discoveryChanged(DiscoveryStatus(backend: .embedded, state: .running)), at: Date())
    }

    @Test func aReaderGoesOnWhereItWas() async throws {
        try await APIServer.with { server in
            for _ in 0..<5 { Self.makeEvent(server) }
            let epoch = server.node.events.epoch
            try await APIConnection.with(server.path) { call in
                try await call.ask("GET", "/v1/events?since=2&epoch=\(epoch)")
                #expect(try await call.head().status == 200)
                for sequence in 3...5 { #expect(try await Self.event(&call)["seq"] == .number(Decimal(sequence))) }
                Self.makeEvent(server)
                #expect(try await Self.event(&call)["seq"] == .number(6))
            }
            // A position of another run, or one that this run has not reached: the reader may have missed all events of this run.
            for query in ["since=2&epoch=another", "since=4000", "epoch=another"] {
                try await APIConnection.with(server.path) { call in
                    try await call.ask("GET", "/v1/events?\(query)")
                    _ = try await call.head()
                    let gap = try await Self.event(&call)
                    #expect(gap["type"]?.string == "gap" && gap["from"] == .number(1) && gap["to"] == gap["seq"], "\(query)")
                    Self.makeEvent(server)
                    let next = try await Self.event(&call)
                    #expect(next["seq"]?.number == (gap["seq"]?.number ?? 0) + 1)
                }
            }
            // Without a position, the stream begins with the next event.
            try await APIConnection.with(server.path) { call in
                try await call.ask("GET", "/v1/events")
                _ = try await call.head()
                Self.makeEvent(server)
                #expect(try await Self.event(&call)["seq"] == .number(10))
            }
        }
    }

    @Test func theDaemonsOwnEventIsNumberedAmongTheNodes() async throws {
        try await APIServer.with { server in
            var library = server.node.events.subscribe(since: 0)
            Self.makeEvent(server)
            await server.node.publish(program: SettingsReload(changed: ["peer.name", "peer.port"], needsRestart: ["peer.port"]))
            Self.makeEvent(server)
            try await APIConnection.with(server.path) { call in
                try await call.ask("GET", "/v1/events?since=1")
                _ = try await call.head()
                let event = try await Self.event(&call)
                #expect(event["type"]?.string == "settings.reloaded" && event["seq"] == .number(2))
                #expect(event["changed"]?.elements.map(\.string) == ["peer.name", "peer.port"])
                #expect(event["needs_restart"]?.elements.map(\.string) == ["peer.port"])
                #expect(try await Self.event(&call)["seq"] == .number(3))
            }
            // A program on the library does not see it, and misses nothing.
            let (first, second) = (await library.next(), await library.next())
            #expect(first?.sequence == 1 && second?.sequence == 3)
            #expect(await server.node.metrics().counters.events == 1)
        }
    }

    @Test func serverSentEventsResumeByTheirID() async throws {
        try await APIServer.with { server in
            for _ in 0..<3 { Self.makeEvent(server) }
            let epoch = server.node.events.epoch
            func first(_ lastEventID: String) async throws -> [String] {
                try await APIConnection.with(server.path) { call in
                    try await call.ask("GET", "/v1/events", ["Accept: text/event-stream", "Last-Event-ID: \(lastEventID)"])
                    let (status, fields) = try await call.head()
                    #expect(status == 200 && fields["content-type"] == "text/event-stream")
                    return String(decoding: try #require(try await call.chunk()), as: UTF8.self).split(separator: "\n").map(String.init)
                }
            }
            let lines = try await first("\(epoch):1")
            #expect(lines.first == "id: \(epoch):2" && lines.dropFirst().first == "event: discovery.changed")
            #expect(lines.last?.hasPrefix("data: {") == true && lines.last?.contains(#""epoch":"\#(epoch)""#) == true)
            #expect(try await first("1") == lines)
            #expect(try await first("another:1").dropFirst().first == "event: gap")
            let wrong = try await APICaller(path: server.path).call("GET", "/v1/events", ["Last-Event-ID: x:y:1"])
            #expect(wrong.code == "invalid-parameter")
        }
    }

    @Test func silenceIsFilledForServerSentEventsAlone() async throws {
        try await APIServer.with { server in
            try await APIConnection.with(server.path) { sse in
                try await sse.ask("GET", "/v1/events", ["Accept: text/event-stream"])
                _ = try await sse.head()
                try await APIConnection.with(server.path) { lines in
                    try await lines.ask("GET", "/v1/events")
                    _ = try await lines.head()
                    // Until the reader waits, it cannot be woken.
                    let heartbeats = Task {
                        while !Task.isCancelled {
                            server.node.events.wakeReaders()
                            try await Task.sleep(for: .milliseconds(5))
                        }
                    }
                    #expect(try await sse.chunk() == Array(":\n\n".utf8))
                    heartbeats.cancel()
                    Self.makeEvent(server)
                    #expect(try await Self.event(&lines)["seq"] == .number(1))
                }
            }
        }
    }

    @Test func whoStallsIsDroppedAndNobodyElse() async throws {
        let time = ManualTime()
        try await APIServer.with(readers: EventReaders { time.now }) { server in
            try await APIConnection.with(server.path) { stalled in
                try await stalled.ask("GET", "/v1/events")
                _ = try await stalled.head()
                try await APIConnection.with(server.path) { reader in
                    try await reader.ask("GET", "/v1/events")
                    _ = try await reader.head()
                    #expect(server.readers.counts.readers == 2)
                    // A large event a second: soon neither the channel nor the socket of the one that does not read holds more.
                    let status = DiscoveryStatus(
                        backend: .avahi, state: .unavailable, error: String(repeating: "x", count: 64 * 1024))
                    var seconds = 0
                    while server.readers.counts.readers == 2, seconds < 1_000 {
                        server.node.events.append(.discoveryChanged(status), at: Date())
                        seconds += 1
                        #expect(try await Self.event(&reader)["seq"] == .number(Decimal(seconds)))
                        time.advance(by: .seconds(1))
                        server.readers.dropStalled()
                    }
                    #expect(seconds >= 60 && server.readers.counts.readers == 1 && server.readers.counts.dropped == 1)
                    server.node.events.append(.discoveryChanged(status), at: Date())
                    #expect(try await Self.event(&reader)["seq"] == .number(Decimal(seconds + 1)))
                    // The stalled one finds an end where its next bytes should be.
                    await #expect(throws: (any Error).self) {
                        while true { _ = try await stalled.chunk() }
                    }
                }
            }
        }
    }

    /// If a reader hangs up while nothing happens, its place is released immediately, not with the next event.
    @Test(.timeLimit(.minutes(1))) func aReaderThatHangsUpLeavesNothing() async throws {
        try await APIServer.with { server in
            for _ in 0..<20 {
                try await APIConnection.with(server.path) { call in
                    try await call.ask("GET", "/v1/events")
                    #expect(try await call.head().status == 200)
                }
            }
            // No event reports the release. Each round trip gives the server time to notice; the time limit ends a wait in vain.
            while server.node.events.readers > 0 {
                #expect(try await APICaller(path: server.path).call("GET", "/v1/status").status == 200)
            }
            #expect(server.readers.counts.readers == 0)
        }
    }

    /// A HEAD request reads no events, and the server does not count its connection as a reader.
    @Test func aHeadIsNoReader() async throws {
        try await APIServer.with { server in
            try await APIConnection.with(server.path) { call in
                try await call.ask("HEAD", "/v1/events")
                let answer = try await call.answer()
                #expect(answer.status == 200 && answer.fields["content-length"] == nil && answer.fields["connection"] == nil)
                #expect(server.readers.counts.readers == 0)
            }
        }
    }

    @Test func aWriteMayTakeAMinute() throws {
        let time = ManualTime()
        let readers = EventReaders { time.now }
        let dropped = Mutex<[String]>([])
        let (slow, idle) = (
            try readers.enter { dropped.withLock { $0.append("slow") } }, try readers.enter { dropped.withLock { $0.append("idle") } }
        )
        readers.writing(idle)
        readers.written(idle)
        readers.writing(slow)
        time.advance(by: EventReaders.stallTime - .nanoseconds(1))
        readers.dropStalled()
        #expect(dropped.withLock { $0 } == [])
        time.advance(by: .nanoseconds(1))
        readers.dropStalled()
        readers.dropStalled()
        #expect(dropped.withLock { $0 } == ["slow"] && readers.counts == (1, 1))
    }

    @Test func thereAreOnlySoManyReaders() throws {
        let readers = EventReaders()
        var ids: [UInt64] = []
        for _ in 0..<EventReaders.limit { ids.append(try readers.enter {}) }
        #expect(throws: APIProblem.self) { try readers.enter {} }
        readers.leave(try #require(ids.first))
        #expect(throws: Never.self) { try readers.enter {} }
        #expect(readers.counts.readers == EventReaders.limit)
        #expect(EventReaders.limit < ControlServer.connectionLimit)
    }

    /// A thousand readers at once get the same events, and other calls are answered meanwhile. HostileTests measures the memory on a daemon
    /// that does nothing else.
    @Test(.timeLimit(.minutes(5))) func aThousandReaders() async throws {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        try await APIServer.with { server in
            let count = 1_000
            let events = 20
            let (subscribed, isSubscribed) = AsyncStream<Void>.makeStream()
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for _ in 0..<count {
                    group.addTask {
                        try await APIConnection.with(server.path) { call in
                            try await call.ask("GET", "/v1/events")
                            _ = try await call.head()
                            isSubscribed.yield()
                            var sequences: [Int] = []
                            while sequences.count < events {
                                let chunk = try #require(try await call.chunk())
                                sequences.append(try ControlJSON.decode(ControlAPI.Event.self, from: chunk).seq.asInt)
                            }
                            return sequences == Array(1...events)
                        }
                    }
                }
                var ready = 0
                for await _ in subscribed {
                    ready += 1
                    if ready == count { break }
                }
                #expect(server.readers.counts.readers == count)
                for _ in 0..<events { Self.makeEvent(server) }
                #expect(try await APICaller(path: server.path).call("GET", "/v1/status").status == 200)
                for try await isRight in group { #expect(isRight) }
            }
        }
    }

    @Test func anEventIsEncodedOnce() throws {
        let buffers = EventBuffers(epoch: APICallTests.someID)
        let status = DiscoveryStatus(backend: .avahi, state: .running)
        func event(_ sequence: UInt64) -> NodeEvent { NodeEvent(sequence: sequence, time: Date(), kind: .discoveryChanged(status)) }
        let first = try buffers.buffer(event(1), .lines)
        #expect(try buffers.buffer(event(1), .lines) == first)
        #expect(try buffers.buffer(event(1), .serverSent) != first)
        for sequence in 2...UInt64(EventBuffers.countLimit * 2) {
            let text = String(buffer: try buffers.buffer(event(sequence), .lines))
            #expect(text.contains("\"seq\":\(sequence),"))
        }
    }
}

extension UInt64 {
    fileprivate var asInt: Int { Int(clamping: self) }
}
