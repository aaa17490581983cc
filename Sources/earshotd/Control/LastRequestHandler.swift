internal import NIOCore
internal import NIOHTTP1

/// Sees to it that a connection ends where HTTP says so, in whatever words the client did (RFC 9112 sections 9.3 and 9.6): `Connection: close`
/// in any case or among other options, and HTTP/1.0. What has no length is chunked for such a client all the same, as those know that are in
/// use: a stream that broke off would look whole to one that reads to the connection's end.
///
/// A request for another protocol (`Upgrade`, CONNECT) is answered as what it is apart from that (RFC 9110 section 7.8), and is the
/// connection's last: the parser takes what follows it for the other protocol, and would keep it without a bound. Sits below what makes
/// Swift HTTP types of the parts, where a request's version is still known; the routes' side finds `Connection: close` in one spelling.
final class LastRequestHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// A request whose answer has not begun.
    fileprivate struct Request {
        let isLast: Bool
        /// The parser takes nothing behind it.
        let isUpgrade: Bool
    }

    /// In their order.
    private var unanswered = CircularBuffer<Request>()
    private var isUpgrade = false
    /// Nothing is parsed any more.
    private var isDeaf = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch self.unwrapInboundIn(data) {
        case .head(var head):
            let request = Request(head)
            self.unanswered.append(request)
            self.isUpgrade = request.isUpgrade
            guard request.isLast else { break }
            head.headers.remove(name: "upgrade")
            head.headers.replaceOrAdd(name: "connection", value: "close")
            return context.fireChannelRead(self.wrapInboundOut(.head(head)))
        case .body: break
        case .end: self.isDeaf = self.isUpgrade
        }
        context.fireChannelRead(data)
    }

    /// What follows a request for another protocol stays in the socket.
    func read(context: ChannelHandlerContext) {
        if !self.isDeaf { context.read() }
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .head(var head) = self.unwrapOutboundIn(data), head.status.code >= 200, let request = self.unanswered.popFirst(),
            request.isLast
        else { return context.write(data, promise: promise) }
        head.headers.replaceOrAdd(name: "connection", value: "close")
        context.write(self.wrapOutboundOut(.head(head)), promise: promise)
    }
}

extension LastRequestHandler.Request {
    fileprivate init(_ head: HTTPRequestHead) {
        let isUpgrade = head.method == .CONNECT || head.headers.contains(name: "upgrade")
        self.init(isLast: head.version.minor == 0 || isUpgrade || !head.isKeepAlive, isUpgrade: isUpgrade)
    }
}
