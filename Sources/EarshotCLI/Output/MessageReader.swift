import EarshotClient
import EarshotSafety
import FoundationEssentials
import Synchronization

/// Prints unread messages and marks them read once they are written, a page at a time.
struct MessageReader: Sendable {
    enum Form: Sendable {
        case text, raw, json
    }

    /// The peer whose messages are printed, in any form of its name.
    let from: String?
    /// The group whose messages are printed, in any form of its name.
    let group: String?
    /// The most messages to print.
    let limit: Int?
    let form: Form

    /// The progress so far.
    private struct Progress {
        var printed = 0
        /// Messages that are printed but not marked read yet, since the daemon may have stopped in between.
        var unmarked: [ControlAPI.ReadRequest.Entry] = []

        mutating func mark(_ client: ControlClient) async throws {
            guard !self.unmarked.isEmpty else { return }
            _ = try await client.markRead(self.unmarked)
            self.unmarked = []
        }
    }

    /// Prints the unread messages.
    func drain(_ client: ControlClient) async throws {
        var progress = Progress()
        try await self.drain(client, from: self.from, in: self.group, &progress)
        if progress.printed == 0 { Standard.note("no unread messages") }
    }

    /// Prints all messages that were received since `start`, read or not, and marks none as read.
    func printAll(_ client: ControlClient, since start: Date?) async throws {
        var printed = 0
        var place: String?
        repeat {
            let page = try await client.messages(all: true, from: self.from, in: self.group, after: place, limit: ReceiveCommand.page)
            for message in page.value.messages {
                if let start, let received = message.receivedAt, received < start { continue }
                try Standard.write(try self.bytes(message))
                printed += 1
            }
            place = page.value.next
        } while place != nil
        if printed == 0 { Standard.note("no messages") }
    }

    /// Prints the unread messages, page by page.
    private func drain(
        _ client: ControlClient, from: (any PeerReference)?, in group: (any GroupReference)?, _ progress: inout Progress
    ) async throws {
        try await progress.mark(client)
        // The place of the last unreadable message: it stays unread, and reading continues after it.
        var place: String?
        while true {
            let wanted = min(ReceiveCommand.page, (self.limit ?? .max) - progress.printed)
            guard wanted > 0 else { return }
            let page = try await client.messages(from: from, in: group, after: place, limit: wanted)
            let messages = page.value.messages
            guard !messages.isEmpty || page.value.next != nil else { return }
            if !page.unreadable.isEmpty { place = page.value.next }
            let written = Mutex<[ControlAPI.ReadRequest.Entry]>([])
            let (failure, isMarked) = try await Interrupts.takingBack {
                let entries = written.withLock { $0 }
                if !entries.isEmpty { _ = try? await client.markRead(entries) }
            } _: {
                for message in messages {
                    let code = Standard.put(try self.bytes(message))
                    guard code == 0 else { return (code, false) }
                    written.withLock { $0.append(.init(id: message.id, from: message.sender.id)) }
                }
                // In one call, before anything can end the process. If the daemon has gone, `mark` does this later.
                let entries = written.withLock { $0 }
                let isMarked = entries.isEmpty ? true : (try? await client.markRead(entries)) != nil
                return (0, isMarked)
            }
            progress.printed += written.withLock { $0.count }
            // Messages that were written are marked read, even if the rest cannot be written.
            if !isMarked { progress.unmarked = written.withLock { $0 } }
            try await progress.mark(client)
            try Standard.check(failure)
            if !page.unreadable.isEmpty, place == nil { return }
        }
    }

    private func bytes(_ message: ControlAPI.Message) throws -> [UInt8] {
        switch self.form {
        case .text: Array(Render.message(message).utf8)
        case .raw: message.body
        case .json: Standard.line(json: try ControlJSON.encode(message))
        }
    }

    /// Prints unread and arriving messages until `wanted` are printed or the time is over, and returns the number of printed messages. With
    /// `follows`, continues after a restart of the daemon.
    func wait(_ client: ControlClient, wanted: Int?, seconds: Double?, follows: Bool) async throws -> Int {
        Standard.endWithReader()
        // Subscribes before the first look, so that no message is missed in between.
        let tell: @Sendable (ControlInterruption) -> Void = { Standard.note($0.words) }
        let arrivals = try await MessageArrivals(client, from: self.from, in: self.group, onInterruption: follows ? tell : nil)
        defer { arrivals.end() }
        let deadline = seconds.map { ContinuousClock.now + .seconds($0) }
        let timer = deadline.map { deadline in
            Task {
                try? await Task.sleep(until: deadline, clock: .continuous)
                arrivals.end()
            }
        }
        defer { timer?.cancel() }
        var progress = Progress()
        try await self.look(client, arrivals, &progress, follows: follows, until: deadline)
        if let wanted, progress.printed >= wanted { return progress.printed }
        for try await arrival in arrivals.stream {
            if case .unreliable(let message) = arrival {
                try Standard.write(try self.bytes(message))
                progress.printed += 1
            }
            if let wanted, progress.printed >= wanted { break }
            try await self.look(client, arrivals, &progress, follows: follows, until: deadline)
            if let wanted, progress.printed >= wanted { break }
        }
        return progress.printed
    }

    /// Prints the unread messages. With `follows`, retries while the daemon is away.
    private func look(
        _ client: ControlClient, _ arrivals: MessageArrivals, _ progress: inout Progress,
        follows: Bool, until deadline: ContinuousClock.Instant?
    ) async throws {
        var backOff = BackOff()
        while true {
            do {
                return try await self.drain(client, from: arrivals.peer, in: arrivals.group, &progress)
            } catch let error as ControlError where error.isOutage {
                guard follows else { throw error }
                let pause = backOff.step()
                // The arrivals end at the deadline, so there is no time for another try.
                if let deadline, ContinuousClock.now + pause >= deadline { return }
                try await Task.sleep(for: pause)
            }
        }
    }
}
