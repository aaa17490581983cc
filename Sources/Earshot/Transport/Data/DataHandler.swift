import EarshotWire
import Logging
import NIOCore

/// The last handler of an attached data connection. It decodes the transfer's bytes, and stops reading if their reader is behind.
///
/// Outgoing bytes are already framed and pass unchanged.
final class DataHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer

    private let inbox: DataInbox
    private let logger: Logger
    private var decoder = DataFrameDecoder()
    private var isHeldUp = false
    private var wantsRead = false
    /// Whether a thread has taken over the socket.
    private var isDetached = false

    init(inbox: DataInbox, logger: Logger) {
        self.inbox = inbox
        self.logger = logger
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !self.isDetached else { return }
        self.decoder.feed(self.unwrapInboundIn(data))
        do throws(WireError) {
            while let piece = try self.decoder.next() {
                switch piece {
                case .bytes(let bytes): if !self.inbox.put(bytes) { self.isHeldUp = true }
                case .end: self.inbox.end(.success(()))
                }
            }
        } catch {
            self.inbox.end(.failure(EarshotError(error.code.earshotCode, error.description, underlying: error)))
            context.close(promise: nil)
        }
    }

    func read(context: ChannelHandlerContext) {
        if self.isHeldUp {
            self.wantsRead = true
        } else {
            context.read()
        }
    }

    /// Resumes reading when the reader has caught up.
    func resume(context: ChannelHandlerContext) {
        self.isHeldUp = false
        guard self.wantsRead else { return }
        self.wantsRead = false
        context.read()
    }

    /// Stops handling, and returns the decoder's state for the thread that takes over the socket.
    func detach() -> DataFrameDecoder {
        self.isDetached = true
        return self.decoder
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        self.logger.debug("a data connection failed", metadata: ["error": "\(error)"])
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        if !self.isDetached { self.inbox.end(.failure(DataConnection.lost)) }
        context.fireChannelInactive()
    }
}
