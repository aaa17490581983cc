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

    /// Prints what is unread now.
    func drain(_ client: ControlClient) async throws { _ = try await self.drain(client, from: self.from, in: self.group, printed: 0) }

    /// Prints what is unread now; `printed` is how many there were before, and the result how many there are now.
    private func drain(_ client: ControlClient, from: String?, in group: String?, printed: Int) async throws -> Int {
        var printed = printed
        // What cannot be read stays unread, and is passed over from there.
        var place: String?
        while true {
            let wanted = min(ReceiveCommand.page, (self.limit ?? .max) - printed)
            guard wanted > 0 else { return printed }
            let page = try await client.messages(from: from, in: group, after: place, limit: wanted)
            let messages = page.value.messages
            guard !messages.isEmpty || page.value.next != nil else { return printed }
            if !page.unreadable.isEmpty { place = page.value.next }
            let written = Mutex<[ControlAPI.ReadRequest.Entry]>([])
            let mark: @Sendable () async throws -> Void = {
                let entries = written.withLock { $0 }
                if !entries.isEmpty { _ = try await client.markRead(entries) }
            }
            let failure = try await Interrupts.takingBack {
                try? await mark()
            } _: {
                for message in messages {
                    let code = Standard.put(try self.bytes(message))
                    guard code == 0 else { return code }
                    written.withLock { $0.append(.init(id: message.id, from: message.sender.id)) }
                }
                return 0
            }
            // In one call; those that were written are read also where the others cannot be, or are not wanted any more.
            try await mark()
            try Standard.check(failure)
            printed += messages.count
            if !page.unreadable.isEmpty, place == nil { return printed }
        }
    }

    private func bytes(_ message: ControlAPI.Message) throws -> [UInt8] {
        switch self.form {
        case .text: Array(Render.message(message).utf8)
        case .raw: message.body
        case .json: Standard.line(json: try ControlJSON.encode(message))
        }
    }

    /// Prints what is unread and what comes in, until `wanted` were printed or the time is over; returns how many were.
    func wait(_ client: ControlClient, wanted: Int?, seconds: Double?) async throws -> Int {
        // Before the first look, so that nothing falls between the two.
        let arrivals = try await MessageArrivals(client, from: self.from, in: self.group)
        defer { arrivals.end() }
        let timer = seconds.map { seconds in
            Task {
                try? await Task.sleep(for: .seconds(seconds))
                arrivals.end()
            }
        }
        defer { timer?.cancel() }
        var printed = try await self.drain(client, from: arrivals.peer, in: arrivals.group, printed: 0)
        if let wanted, printed >= wanted { return printed }
        for try await arrival in arrivals.stream {
            if case .unreliable(let message) = arrival {
                try Standard.write(try self.bytes(message))
                printed += 1
            }
            if let wanted, printed >= wanted { break }
            printed = try await self.drain(client, from: arrivals.peer, in: arrivals.group, printed: printed)
            if let wanted, printed >= wanted { break }
        }
        return printed
    }
}
