import EarshotWire
import NIOCore
import Testing

/// The cases of a session's end, with what was open in it.
extension ConnectionCase {
    private static let resource = Fixtures.resource
    private static let stream = Fixtures.stream
    private static let next = SessionID(high: 9, low: 9)
    private static let over = Frame.sessionEnd(Fixtures.session)
    private static let cancel = Frame.resource(.cancel(ResourceRefuse(id: resource, refusal: Refusal(code: .cancelled))))
    private static let abort = Frame.stream(.abort(StreamRefuse(id: stream, refusal: Refusal(code: .cancelled))))

    private static func offer(_ id: ResourceID = resource, in session: SessionID = Fixtures.session) -> Frame {
        .resource(.offer(ResourceOffer(session: session, id: id, kind: .file, size: 10, name: "a")))
    }
    private static func accept(_ offset: UInt64, _ limit: UInt64) -> Frame {
        .resource(.accept(ResourceAccept(id: resource, offset: offset, limit: limit)))
    }
    private static func chunk(_ offset: UInt64, _ count: Int) -> Frame {
        .resource(.chunk(ResourceChunk(id: resource, offset: offset, data: ByteBuffer(repeating: 0xAA, count: count))))
    }
    private static func open() throws -> Frame {
        .stream(.open(StreamOpen(session: Fixtures.session, id: stream, name: try StreamName("a"))))
    }
    private static func take(_ limit: UInt64) -> Frame { .stream(.accept(StreamAccept(id: stream, limit: limit))) }
    private static func data(_ count: Int) -> Frame {
        .stream(.data(StreamData(id: stream, data: ByteBuffer(repeating: 0xAA, count: count))))
    }

    static func ends() throws -> [ConnectionCase] {
        let receiving = [got(offer()), .sent(accept(0, 4)), got(chunk(0, 2))]
        let sending = [.sent(offer()), got(accept(0, 10)), .sent(chunk(0, 4))]
        let dropped = [late(chunk(2, 2)), .held(accept(4, 10)), .held(.resource(.done(resource))), late(cancel), wrong(cancel)]
        let silent = [.held(chunk(4, 1)), late(accept(4, 10)), late(.resource(.done(resource))), wrong(.resource(.done(resource)))]
        let reading = [got(try open()), .sent(take(4)), got(data(1))]
        let writing = [.sent(try open()), got(take(8)), .sent(data(1))]
        let end = Frame.stream(.end(StreamEnd(id: stream, size: 4)))
        let unread = [late(data(3)), late(end), .held(.stream(.done(stream))), late(abort), wrong(abort)]
        let unwritten = [.held(data(1)), late(take(9)), late(.stream(.done(stream))), wrong(.stream(.done(stream)))]
        return [
            ConnectionCase("its end, received, ends the peer's transfers", receiving + [got(over)] + dropped),
            ConnectionCase("its end, sent, does so too", receiving + [.sent(over)] + dropped),
            ConnectionCase("its end, received, ends this side's transfers", sending + [got(over)] + silent),
            ConnectionCase("its end, sent, ends them too", sending + [.sent(over)] + silent),
            ConnectionCase("its end, received, ends the peer's streams", reading + [got(over)] + unread),
            ConnectionCase("its end, sent, ends the streams", reading + [.sent(over)] + unread),
            ConnectionCase("its end, received, ends this side's streams", writing + [got(over)] + unwritten),
            ConnectionCase("its end, sent, ends this side's streams", writing + [.sent(over)] + unwritten),
            ConnectionCase("another's end ends none of it", receiving + [got(.sessionEnd(next)), got(chunk(2, 2)), .sent(accept(4, 10))]),
            ConnectionCase("ids stay used behind its end", [got(offer()), got(over), wrong(offer(in: next))]),
            ConnectionCase(
                "the next one has all 64 places",
                (0..<64).map { got(offer(ResourceID(high: 2, low: $0))) } + [.sent(over)]
                    + (64..<128).map { got(offer(ResourceID(high: 2, low: $0), in: next)) }),
        ]
    }
}
