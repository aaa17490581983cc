import EarshotWire
import Logging
import NIOCore

/// The last handler of an attached data connection: bytes to runs of the transfer's bytes, held up where their reader is behind.
///
/// What is written is framed already, and passes.
final class DataHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer

    private let inbox: DataInbox
    private let logger: Logger
    private var decoder = DataFrameDecoder()
    private var isHeldUp = false
    private var wantsRead = false
    /// Whether a thread has taken the socket over.
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

    /// The reader has caught up.
    func resume(context: ChannelHandlerContext) {
        self.isHeldUp = false
        guard self.wantsRead else { return }
        self.wantsRead = false
        context.read()
    }

    /// Stops handling: the socket goes to a thread, with where the decoder stands.
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
