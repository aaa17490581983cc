import Earshot
import EarshotCore
import NIOCore
import NIOHTTP1

/// Writes the pieces of an upload to its connection. One piece is in the socket's queue while the next one is read, so that a slow device
/// slows the source down.
struct UploadSender: Sendable {
    let channel: any Channel

    /// Sends the body, which has to have `size` bytes. Returns the failure of the body itself; `nil` if all of it was sent, or if the
    /// connection has ended, which its handler reports.
    func send(_ body: any AsyncSequence<ByteBuffer, any Error> & Sendable, size: UInt64) async -> DeviceFailure? {
        var left = size
        var pending: EventLoopFuture<Void>?
        do {
            for try await var piece in body {
                guard UInt64(piece.readableBytes) <= left else { return .lost("the content has more than the offered \(size) bytes") }
                left -= UInt64(piece.readableBytes)
                while let part = piece.readSlice(length: min(piece.readableBytes, LocalSendLimits.uploadPiece)), part.readableBytes > 0 {
                    let taken = self.write(part, isLast: left == 0 && piece.readableBytes == 0)
                    if let pending, !(await Self.succeeds(pending)) { return nil }
                    pending = taken
                }
            }
        } catch {
            return .lost("the content cannot be read: \(error)")
        }
        guard !Task.isCancelled else { return nil }
        guard left == 0 else { return .lost("the content has fewer than the offered \(size) bytes") }
        self.channel.eventLoop.execute { self.withHandler { $0.sendEnd(context: $1) } }
        return nil
    }

    /// Writes a piece. The future fails if the connection has ended.
    private func write(_ piece: ByteBuffer, isLast: Bool) -> EventLoopFuture<Void> {
        let taken = self.channel.eventLoop.makePromise(of: Void.self)
        self.channel.eventLoop.execute {
            guard self.withHandler({ $0.send(piece, isLast: isLast, taken: taken, context: $1) }) else {
                return taken.fail(ChannelError.ioOnClosedChannel)
            }
        }
        return taken.futureResult
    }

    /// Calls `body` on the event loop. Returns `false` if the connection has ended.
    @discardableResult
    private func withHandler(_ body: (ExchangeHandler, ChannelHandlerContext) -> Void) -> Bool {
        guard let context = try? self.channel.pipeline.syncOperations.context(handlerType: ExchangeHandler.self),
            let handler = context.handler as? ExchangeHandler
        else { return false }
        body(handler, context)
        return true
    }

    private static func succeeds(_ future: EventLoopFuture<Void>) async -> Bool {
        do {
            try await future.get()
            return true
        } catch {
            return false
        }
    }
}
