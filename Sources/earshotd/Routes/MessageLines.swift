internal import Earshot
internal import EarshotCoding
internal import EarshotClient
internal import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore
internal import NIOCore

/// `POST /v1/messages` with NDJSON: any number of messages, one a line, and the outcome of each in the same order.
///
/// The request is read while the answer is written. The lines that have been read and not answered are limited: if a client does not read the
/// answers, the daemon does not read from the client. Lines that arrive together are handed to the node together.
struct MessageLines: Sendable {
    /// The longest line, in bytes: the limit of a single message's body.
    static let lineLimit = Request.jsonLimit
    /// Lines in one batch, which the node handles in one turn.
    static let linesAtOnce = 256
    /// Messages that have been read and not answered, in bytes with their overhead: twice the limit of messages in flight to one peer.
    static let windowBytes = 8 * 1024 * 1024
    /// The media type of the request and of the answer.
    static let mediaType = "application/x-ndjson"

    let node: Node
    /// Whether only lines that failed are answered (RFC 7240 section 4.2, `return=minimal`).
    let isMinimal: Bool

    /// A line without an answer.
    private enum Line {
        case refused(APIProblem)
        /// The index in the batch.
        case sent(Int)
    }

    /// Lines that were read together, and their batch.
    private struct Handed: Sendable {
        var lines: [(number: UInt64, line: Line)] = []
        var batch: MessageBatch?
        var cost = 0
    }

    /// Reads the requests and writes the answers, until the request ends.
    @concurrent func copy(from body: RequestBody, to writer: inout any ResponseBodyWriter) async throws {
        let (handed, hand) = AsyncStream.makeStream(of: Handed.self)
        let window = SendingWindow(limit: Self.windowBytes)
        async let reading: Void = self.read(body, window, hand)
        // Once nothing is answered any more, the reading task must not wait for room forever.
        defer { window.close() }
        var results = MessageLineWriter(isMinimal: self.isMinimal)
        for await lines in handed {
            let outcomes = await lines.batch?.outcomes() ?? []
            var buffer = ByteBuffer()
            for (number, line) in lines.lines {
                switch line {
                case .refused(let problem): try results.write(number, .failure(problem), into: &buffer)
                case .sent(let place): try results.write(number, outcomes[place].mapError(APIProblem.init), into: &buffer)
                }
            }
            if buffer.readableBytes > 0 { try await writer.write(buffer) }
            window.release(lines.cost)
        }
        try await reading
        try await writer.finish(nil)
    }

    @concurrent private func read(
        _ body: RequestBody, _ window: SendingWindow, _ hand: AsyncStream<Handed>.Continuation
    ) async throws {
        defer { hand.finish() }
        var buffer = LineBuffer(limit: Self.lineLimit)
        var requests = MessageRequestReader()
        var number: UInt64 = 0
        for try await piece in body {
            buffer.append(piece)
            guard try await self.hand(&buffer, isLast: false, &requests, &number, window, hand) else { return }
        }
        _ = try await self.hand(&buffer, isLast: true, &requests, &number, window, hand)
    }

    /// Hands over the complete lines in the buffer. Returns `false` if the request cannot be read any further.
    private func hand(
        _ buffer: inout LineBuffer, isLast: Bool, _ requests: inout MessageRequestReader, _ number: inout UInt64, _ window: SendingWindow,
        _ hand: AsyncStream<Handed>.Continuation
    ) async throws -> Bool {
        var handed = Handed()
        var drafts: [MessageDraft] = []
        var canGoOn = true
        do throws(LineBuffer.LineTooLong) {
            while handed.lines.count < Self.linesAtOnce {
                guard let line = try buffer.next() ?? (isLast ? buffer.rest() : nil) else { break }
                number += 1
                guard line.readableBytes > 0 else { continue }
                do throws(APIProblem) {
                    let draft = try requests.draft(line)
                    handed.lines.append((number, .sent(drafts.count)))
                    handed.cost += draft.cost
                    drafts.append(draft)
                } catch {
                    handed.lines.append((number, .refused(error)))
                    handed.cost += EarshotLimits.messageOverhead
                }
            }
        } catch {
            // The next line begins after the end of this one, which may never come.
            let problem = APIProblem(.tooLarge, "a line has at most \(Self.lineLimit) bytes; it and what follows it was not read")
            handed.lines.append((number + 1, .refused(problem)))
            canGoOn = false
        }
        guard !handed.lines.isEmpty else { return canGoOn }
        try await window.take(handed.cost)
        if !drafts.isEmpty { handed.batch = await self.node.submit(drafts) }
        hand.yield(handed)
        guard canGoOn, handed.lines.count == Self.linesAtOnce else { return canGoOn }
        return try await self.hand(&buffer, isLast: isLast, &requests, &number, window, hand)
    }
}
