import EarshotClient
import EarshotSafety
import Synchronization

/// Prints unread messages and marks them read once they are written out, those of a page at once.
struct MessageReader: Sendable {
    enum Form: Sendable {
        case text, raw, json
    }

    /// Only messages of this peer, in any form of naming it.
    let from: String?
    /// Only messages of this group, in any form of naming it.
    let group: String?
    /// The most that are printed in all.
    let limit: Int?
    let form: Form

    /// The progress so far.
    private struct Progress {
        var printed = 0
        /// Printed, and not marked read yet: the daemon may have gone away in between.
        var unmarked: [ControlAPI.ReadRequest.Entry] = []

        mutating func mark(_ client: ControlClient) async throws {
            guard !self.unmarked.isEmpty else { return }
            _ = try await client.markRead(self.unmarked)
            self.unmarked = []
        }
    }

    /// Prints what is unread now.
    func drain(_ client: ControlClient) async throws {
        var progress = Progress()
        try await self.drain(client, from: self.from, in: self.group, &progress)
        if progress.printed == 0 { Standard.note("no unread messages") }
    }

    /// Prints what is unread now.
    private func drain(_ client: ControlClient, from: String?, in group: String?, _ progress: inout Progress) async throws {
        try await progress.mark(client)
        // What cannot be read stays unread, and is passed over from there.
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
                // In one call, and before anything can end the process; where the daemon has gone, once it is back.
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

    /// Prints what is unread and what comes in, until `wanted` were printed or the time is over; returns how many were. With `follows` it goes
    /// on when the daemon is restarted.
    func wait(_ client: ControlClient, wanted: Int?, seconds: Double?, follows: Bool) async throws -> Int {
        Standard.endWithReader()
        // Before the first look, so that nothing falls between the two.
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

    /// Prints what is unread now. With `follows`, a daemon that is away is tried again.
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
                // The arrivals end at the deadline.
                if let deadline, ContinuousClock.now + pause >= deadline { return }
                try await Task.sleep(for: pause)
            }
        }
    }
}
