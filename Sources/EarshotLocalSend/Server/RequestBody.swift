import Earshot
import EarshotCore
import NIOCore
import Synchronization

/// The bytes of a request's body, with back-pressure: the socket is not read while `LocalSendLimits.waitingBytes` wait for the reader. For
/// one reader.
struct RequestBody: AsyncSequence, Sendable {
    typealias Element = ByteBuffer
    typealias Failure = any Error

    let inbox: DataInbox
    /// Resumes reading the socket.
    let resume: @Sendable () -> Void

    struct AsyncIterator: AsyncIteratorProtocol {
        let body: RequestBody
        /// The piece before, whose memory is used again.
        private var last: ByteBuffer?

        init(body: RequestBody) { self.body = body }

        /// Waits for the next piece; `nil` at the body's end.
        /// - Throws: `not-connected` if the connection ends first, or is silent for too long.
        mutating func next() async throws -> ByteBuffer? {
            if let last = self.last.take() { self.body.inbox.giveBack(last) }
            let piece = try await self.body.inbox.next(hasRoom: self.body.resume)
            self.last = piece
            return piece
        }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(body: self) }
}

/// The memory for JSON bodies of all connections together, beyond that of ordinary ones. Decoding takes several times their size.
final class BodyBudget: Sendable {
    private let used = Mutex(0)

    /// The bytes that count now.
    var charged: Int { self.used.withLock { $0 } }

    /// Reads a whole body, whose declared length is `length`, and returns the result of `decode`.
    /// - Throws: `tooLarge` for a body over `LocalSendLimits.bodyBytes`; `busy` if other bodies take the memory; `invalid` if the
    ///   connection ends.
    func collect<Message>(
        _ body: RequestBody, length: Int?, _ decode: (ByteBuffer) throws(DeviceRefusal) -> Message
    ) async throws(DeviceRefusal) -> Message {
        guard (length ?? 0) <= LocalSendLimits.bodyBytes else { throw .tooLarge }
        var whole = ByteBuffer()
        var taken = 0
        defer { self.used.withLock { [taken] in $0 -= taken } }
        var iterator = body.makeAsyncIterator()
        while true {
            let next: ByteBuffer?
            do {
                next = try await iterator.next()
            } catch {
                throw .invalid
            }
            guard let piece = next else { break }
            guard whole.readableBytes + piece.readableBytes <= LocalSendLimits.bodyBytes else { throw .tooLarge }
            whole.writeImmutableBuffer(piece)
            let charge = max(0, whole.readableBytes - LocalSendLimits.ordinaryBodyBytes)
            guard self.take(charge - taken) else { throw .busy }
            taken = charge
        }
        return try decode(whole)
    }

    private func take(_ bytes: Int) -> Bool {
        self.used.withLock { used in
            guard used + bytes <= LocalSendLimits.allBodyBytes else { return false }
            used += bytes
            return true
        }
    }
}
