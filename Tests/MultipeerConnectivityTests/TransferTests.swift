import Foundation
import Synchronization
import Testing

@testable import MultipeerConnectivity

/// Streams and resources between two programs.
@Suite(.timeLimit(.minutes(2)), .serialized) struct TransferTests {
    private func bytes(_ count: Int) -> Data { Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }) }

    private func output(_ name: String, from one: Program, to other: Program) throws -> OutputStream {
        try one.session.startStream(withName: name, toPeer: other.peer)
    }

    // MARK: Streams

    @Test func aStreamByThreads() async throws {
        let programs = await mesh(2)
        let sent = self.bytes(3_000_000)
        nonisolated(unsafe) let output = try self.output("camera", from: programs[0], to: programs[1])
        output.open()
        Thread {
            var offset = 0
            while offset < sent.count {
                let piece = Array(sent[offset..<min(offset + 70_000, sent.count)])
                let count = output.write(piece, maxLength: piece.count)
                guard count > 0 else { break }
                offset += count
            }
            output.close()
        }.start()
        await programs[1].until(.stream("camera", programs[0].peer))
        nonisolated(unsafe) let input = try #require(programs[1].streams.first)
        let got = await withCheckedContinuation { continuation in
            Thread {
                input.open()
                var data = Data()
                var space = [UInt8](repeating: 0, count: 10_000)
                while true {
                    let count = input.read(&space, maxLength: space.count)
                    guard count > 0 else { break }
                    data.append(contentsOf: space.prefix(count))
                }
                continuation.resume(returning: data)
            }.start()
        }
        #expect(got == sent && input.streamError == nil && input.streamStatus == .atEnd)
        #expect(output.streamStatus == .closed)
    }

    /// A program that lives in its run loop: everything by its delegate, nothing by waiting.
    private final class Reader: NSObject, StreamDelegate {
        var data = Data()
        var events: [Stream.Event] = []

        func stream(_ stream: Stream, handle event: Stream.Event) {
            self.events.append(event)
            guard event == .hasBytesAvailable, let input = stream as? InputStream else { return }
            var space = [UInt8](repeating: 0, count: 4096)
            let count = input.read(&space, maxLength: space.count)
            if count > 0 { self.data.append(contentsOf: space.prefix(count)) }
        }
    }

    private final class Writer: NSObject, StreamDelegate {
        private var rest: Data
        init(_ data: Data) { self.rest = data }

        func stream(_ stream: Stream, handle event: Stream.Event) {
            guard event == .hasSpaceAvailable, let output = stream as? OutputStream else { return }
            guard !self.rest.isEmpty else { return output.close() }
            let count = output.write(Array(self.rest.prefix(30_000)), maxLength: min(self.rest.count, 30_000))
            self.rest = Data(self.rest.dropFirst(count))
        }
    }

    /// Opens a stream on a thread with a run loop: what it gives to read, and what it tells, until that event.
    private func told(by stream: Stream, until last: Stream.Event) async -> (Data, [Stream.Event]) {
        nonisolated(unsafe) let stream = stream
        return await withCheckedContinuation { continuation in
            Thread {
                let reader = Reader()
                stream.delegate = reader
                stream.schedule(in: .current, forMode: .default)
                stream.open()
                while reader.events.last != last, RunLoop.current.run(mode: .default, before: .distantFuture) {}
                continuation.resume(returning: (reader.data, reader.events))
            }.start()
        }
    }

    @Test func aStreamByRunLoops() async throws {
        let programs = await mesh(2)
        let sent = self.bytes(1_000_000)
        nonisolated(unsafe) let output = try self.output("loop", from: programs[0], to: programs[1])
        Thread {
            let writer = Writer(sent)
            output.delegate = writer
            output.schedule(in: .current, forMode: .default)
            output.open()
            while output.streamStatus != .closed, RunLoop.current.run(mode: .default, before: .distantFuture) {}
        }.start()
        await programs[1].until(.stream("loop", programs[0].peer))
        nonisolated(unsafe) let input = try #require(programs[1].streams.first)
        let (got, events) = await self.told(by: input, until: .endEncountered)
        #expect(got == sent)
        #expect(events.first == .openCompleted && events.count { $0 == .openCompleted } == 1 && events.last == .endEncountered)
    }

    @Test func aStreamWhoseReaderGoes() async throws {
        let programs = await mesh(2)
        let output = try self.output("x", from: programs[0], to: programs[1])
        output.open()
        await programs[1].until(.stream("x", programs[0].peer))
        programs[1].streams.first?.open()
        programs[1].streams.first?.close()
        nonisolated(unsafe) let stream = output
        let error = await withCheckedContinuation { continuation in
            Thread {
                let block = [UInt8](repeating: 1, count: 100_000)
                while stream.write(block, maxLength: block.count) > 0 {}
                continuation.resume(returning: stream.streamError as? MCError)
            }.start()
        }
        #expect(error?.code == .cancelled && stream.streamStatus == .error, "\(String(describing: error)) \(stream.streamStatus.rawValue)")
        #expect(throws: MCError(.invalidParameter)) { try self.output("", from: programs[0], to: programs[1]) }
        programs[1].stop()
        await programs[0].until(.state(programs[1].peer, .notConnected))
        #expect(throws: MCError(.notConnected)) { try self.output("x", from: programs[0], to: programs[1]) }
    }

    /// The writer is told that the peer left, although it has written nothing.
    @Test func aStreamWhosePeerLeavesWhileItsWriterIsAtRest() async throws {
        let programs = await mesh(2)
        nonisolated(unsafe) let output = try self.output("rest", from: programs[0], to: programs[1])
        await programs[1].until(.stream("rest", programs[0].peer))
        programs[1].stop()
        let (_, events) = await self.told(by: output, until: .errorOccurred)
        #expect(events.first == .openCompleted && events.last == .errorOccurred)
        #expect(output.streamStatus == .error)
    }

    /// A reader closes the stream after the writer has written all its data.
    @Test func aStreamWhoseReaderGoesWhileItsWriterIsAtRest() async throws {
        let programs = await mesh(2)
        nonisolated(unsafe) let output = try self.output("rest", from: programs[0], to: programs[1])
        await programs[1].until(.stream("rest", programs[0].peer))
        programs[1].streams.first?.open()
        programs[1].streams.first?.close()
        let (_, events) = await self.told(by: output, until: .errorOccurred)
        #expect(events.last == .errorOccurred)
        #expect((output.streamError as? MCError)?.code == .cancelled && output.streamStatus == .error)
    }

    /// A resource is a part of the work that is the thread's current progress.
    @Test func theCurrentProgressCountsAResource() async throws {
        let programs = await mesh(2)
        let url = try self.file(Data([1, 2]))
        defer { try? FileManager.default.removeItem(at: url) }
        let whole = Progress(totalUnitCount: 2)
        let (ends, end) = AsyncStream<Void>.makeStream()
        func send() {
            whole.becomeCurrent(withPendingUnitCount: 2)
            programs[0].session.sendResource(at: url, withName: "x", toPeer: programs[1].peer) { _ in end.yield(()) }
            whole.resignCurrent()
        }
        send()
        for await _ in ends { break }
        #expect(whole.isFinished && whole.completedUnitCount == 2)
    }

    /// Nothing is sent any more: the next bytes are not waited for.
    @Test func aSenderThatIsCancelledWaitsForNoBytes() async {
        let buffer = StreamBuffer {}
        let sender = Task { try await buffer.next() }
        sender.cancel()
        await #expect(throws: CancellationError.self) { try await sender.value }
    }

    // MARK: Resources

    private func file(_ data: Data) throws -> URL {
        let place = FileManager.default.temporaryDirectory.appendingPathComponent("multipeer-test-\(UUID().uuidString)")
        try data.write(to: place)
        return place
    }

    private func send(_ url: URL, _ name: String, from one: Program, to other: Program, _ body: (Progress?) async throws -> Void = { _ in })
        async throws -> MCError?
    {
        let (ends, end) = AsyncStream<MCError?>.makeStream()
        try await body(one.session.sendResource(at: url, withName: name, toPeer: other.peer) { end.yield($0 as? MCError) })
        for await error in ends { return error }
        return nil
    }

    @Test func resourcesBothWays() async throws {
        let programs = await mesh(2)
        let data = self.bytes(16 << 20)
        let url = try self.file(data)
        defer { try? FileManager.default.removeItem(at: url) }
        for (one, other) in [(programs[0], programs[1]), (programs[1], programs[0])] {
            var fractions: [Double] = []
            let error = try await self.send(url, "film.mkv", from: one, to: other) { progress in
                for await fraction in try #require(progress).updates { fractions.append(fraction) }
            }
            #expect(error == nil)
            await other.until(.got("film.mkv", one.peer, data))
            #expect(other.told.contains(.began("film.mkv", one.peer)))
            #expect(fractions.last == 1 && fractions == fractions.sorted())
            #expect(other.progress.last?.isFinished == true)
        }
    }

    /// Large files have room where the system says so: `/tmp` may be in memory.
    @Test func aResourceLiesWhereLargeFilesDo() async throws {
        let programs = await mesh(2)
        let url = try self.file(Data([1]))
        defer { try? FileManager.default.removeItem(at: url) }
        #expect(try await self.send(url, "x", from: programs[0], to: programs[1]) == nil)
        await programs[1].until(.got("x", programs[0].peer, Data([1])))
        let file = try #require(programs[1].files.first)
        let place = file.deletingLastPathComponent()
        let wanted = ProcessInfo.processInfo.environment["TMPDIR"] ?? ""
        let above = URL(fileURLWithPath: wanted.hasPrefix("/") ? wanted : "/var/tmp")
        #expect(place.deletingLastPathComponent().standardizedFileURL.path == above.standardizedFileURL.path)
        #expect(place.lastPathComponent.hasPrefix("earshot-\(geteuid())-"), "one that is swept after a crash")
        // A file that the program did not move is removed before the program's next delegate call.
        try programs[0].session.send(Data("next".utf8), toPeers: [programs[1].peer], with: .reliable)
        await programs[1].until(.data(Data("next".utf8), programs[0].peer))
        #expect(!FileManager.default.fileExists(atPath: place.path))
    }

    @Test func whatCannotBeSent() async throws {
        let programs = await mesh(2)
        let url = try self.file(Data([1]))
        defer { try? FileManager.default.removeItem(at: url) }
        let nowhere = URL(fileURLWithPath: "/nowhere/at/all")
        #expect(try await self.send(nowhere, "x", from: programs[0], to: programs[1])?.code == .invalidParameter)
        #expect(try await self.send(url, "../x", from: programs[0], to: programs[1])?.code == .invalidParameter)
        let web = try #require(URL(string: "https://example.org/x"))
        #expect(try await self.send(web, "x", from: programs[0], to: programs[1])?.code == .unsupported)
        let stranger = Program("x", type: freshType())
        #expect(try await self.send(url, "x", from: programs[0], to: stranger)?.code == .notConnected)
    }

    @Test(arguments: [true, false]) func eitherSideCancelsAResource(_ byReceiver: Bool) async throws {
        let programs = await mesh(2)
        // Longer than it takes to hear of it and to cancel.
        let url = try self.file(Data())
        defer { try? FileManager.default.removeItem(at: url) }
        #expect(truncate(url.path, 2 << 30) == 0)
        let error = try await self.send(url, "big", from: programs[0], to: programs[1]) { progress in
            await programs[1].until(.began("big", programs[0].peer))
            if byReceiver { programs[1].progress.first?.cancel() } else { progress?.cancel() }
        }
        #expect(error?.code == .cancelled)
        await programs[1].until(.got("big", programs[0].peer, nil))
    }

    /// A peer whose connection is lost, and one that leaves: what it was sending ends, once, before the peer goes.
    @Test(arguments: [true, false]) func aSenderThatGoes(_ isLost: Bool) async throws {
        let url = try self.file(Data())
        defer { try? FileManager.default.removeItem(at: url) }
        #expect(truncate(url.path, 2 << 30) == 0)
        let (receiver, sender) = try await isLost ? self.receiveOfLost(url) : self.receiveOfLeaving(url)
        await receiver.until(.state(sender, .notConnected))
        let ends = receiver.told.filter { $0 == .got("big", sender, nil) || $0 == .state(sender, .notConnected) }
        #expect(ends == [.got("big", sender, nil), .state(sender, .notConnected)])
        #expect(receiver.progress.count == 1)
    }

    /// Starts a transfer to a program, and disconnects the sender in the middle.
    private func receiveOfLeaving(_ url: URL) async throws -> (Program, MCPeerID) {
        let programs = await mesh(2)
        programs[0].session.sendResource(at: url, withName: "big", toPeer: programs[1].peer)
        await programs[1].until(.began("big", programs[0].peer))
        programs[0].stop()
        return (programs[1], programs[0].peer)
    }

    /// Starts a transfer to a program from a node that ends in the middle without leaving the session.
    private func receiveOfLost(_ url: URL) async throws -> (Program, MCPeerID) {
        let host = Program("host", type: freshType())
        host.advertiser.startAdvertisingPeer()
        let guest = try await Guest(of: host)
        try await guest.join(host)
        await host.until(.state(guest.peer, .connected))
        try await guest.send(url, "big", to: host)
        await host.until(.began("big", guest.peer))
        await guest.end()
        return (host, guest.peer)
    }
}
