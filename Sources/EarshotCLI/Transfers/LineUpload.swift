import EarshotClient
import EarshotSafety
import Glibc
import NIOCore
import NIOPosix
import Synchronization

/// Sends the lines of standard input as messages, as fast as the daemon accepts them, and reports the outcome of each.
struct LineUpload: Sendable {
    /// The part that all requests have in common.
    struct Template: Sendable {
        let isUnreliable: Bool
        let isQueued: Bool
        private let head: ByteBuffer

        /// Creates the part for these peers, for a group, or (with neither) for all peers in a session.
        init(
            recipients: [String]?, group: String? = nil, contentType: String?, isUnreliable: Bool, isQueued: Bool, timeout: Double?,
            inReplyTo: MessageID? = nil, pin: String? = nil
        ) {
            self.isUnreliable = isUnreliable
            self.isQueued = isQueued
            var head = ByteBuffer(string: group == nil ? "{\"to\":" : "{\"group\":")
            if let group {
                head.writeJSONString(group.utf8)
            } else if let recipients {
                for (index, name) in recipients.enumerated() {
                    head.writeString(index == 0 ? "[" : ",")
                    head.writeJSONString(name.utf8)
                }
                head.writeString("]")
            } else {
                head.writeString("\"all\"")
            }
            if let contentType {
                head.writeString(",\"content_type\":")
                head.writeJSONString(contentType.utf8)
            }
            if isUnreliable { head.writeString(",\"mode\":\"unreliable\"") }
            if isQueued { head.writeString(",\"queue\":true") }
            if let timeout { head.writeString(",\"timeout_seconds\":\(timeout)") }
            if let pin {
                head.writeString(",\"pin\":")
                head.writeJSONString(pin.utf8)
            }
            if let inReplyTo { head.writeString(",\"in_reply_to\":\"\(inReplyTo)\"") }
            self.head = head
        }

        /// Appends the request for one line.
        func write(_ line: ByteBuffer, into buffer: inout ByteBuffer) {
            buffer.writeImmutableBuffer(self.head)
            let bytes = line.readableBytesView
            // NUL is valid UTF-8, but does not occur in text.
            if !bytes.contains(0), String(validating: bytes, as: UTF8.self) != nil {
                buffer.writeString(",\"body\":")
                buffer.writeJSONString(bytes)
            } else {
                buffer.writeString(",\"body_base64\":")
                buffer.writeBytes((try? ControlJSON.encode(Base64Bytes(Array(bytes)))) ?? [])
            }
            buffer.writeString("}\n")
        }
    }

    /// The most bytes of one read from standard input.
    private static let pieceSize = 256 * 1024

    let template: Template
    /// Whether every result is printed.
    let showsJSON: Bool

    /// The state of the reading.
    private struct State {
        var lines = LineBuffer(limit: WireLimits.messageBody)
        var failure: CommandFailure?
        var isAtEnd = false
    }

    /// Runs until standard input ends and every message has an outcome.
    func run(_ client: ControlClient) async throws {
        let state = Mutex(State())
        let stream = AsyncStreamOfBytes {
            // Runs on a thread of its own, since it blocks until the writing program produces lines.
            try await NIOThreadPool.singleton.runIfActive { self.next(state) }
        }
        var outcomes = DeliveryOutcomes(isQueued: self.template.isQueued, isUnreliable: self.template.isUnreliable)
        for try await line in try await client.send(lines: stream, failures: !self.showsJSON) {
            if self.showsJSON { try Standard.write(json: line) }
            await self.judge(line, &outcomes, client)
        }
        if let failure = state.withLock({ $0.failure }) { outcomes.add(failure, place: "") }
        try outcomes.end()
    }

    private func judge(_ line: [UInt8], _ outcomes: inout DeliveryOutcomes, _ client: ControlClient) async {
        let result: ControlAPI.MessageLineResult
        do {
            result = try ControlJSON.read(ControlAPI.MessageLineResult.self, from: line).value
        } catch {
            // An unreadable result does not affect the others.
            return outcomes.add(CommandFailure(.malformed("a result of the daemon: \(error)")), place: "")
        }
        let place = "line \(result.line): "
        if let error = result.error {
            outcomes.add(CommandFailure(code: error.code, message: error.message), place: place)
        } else {
            let recipients = result.recipients ?? []
            // One call for the names: a thousand failed messages must not make a thousand calls.
            if outcomes.names.isEmpty { outcomes.names = await DeliveryOutcomes.names(for: recipients, client) }
            outcomes.add(result.messageID, recipients, place: place)
        }
    }

    /// The requests for the next lines; `nil` at the end.
    private func next(_ state: borrowing Mutex<State>) -> ByteBuffer? {
        state.withLock { state in
            var requests = ByteBuffer()
            while requests.readableBytes == 0, !state.isAtEnd {
                do {
                    let piece = try Standard.read(limit: Self.pieceSize)
                    if let piece { state.lines.append(piece) } else { state.isAtEnd = true }
                    while let line = try state.lines.next() ?? (state.isAtEnd ? state.lines.rest() : nil) {
                        // An empty line keeps its place, so that the daemon's line numbers match the input's.
                        if line.readableBytes > 0 { self.template.write(line, into: &requests) } else { requests.writeString("\n") }
                    }
                } catch let error as FileError {
                    state.failure = CommandFailure(.noInput, error.description)
                    state.isAtEnd = true
                } catch {
                    state.failure = CommandFailure(
                        .data,
                        "a line is longer than the limit of \(WireLimits.messageBody) bytes; it and later lines were not sent")
                    state.isAtEnd = true
                }
            }
            return requests.readableBytes > 0 ? requests : nil
        }
    }
}
