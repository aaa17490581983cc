import EarshotSafety
import EarshotWire
import NIOCore

/// The cases of resources, all of one of 10 bytes.
extension ConnectionCase {
    private static let id = Fixtures.resource
    private static let offer = Frame.resource(
        .offer(
            ResourceOffer(session: Fixtures.session, id: id, kind: .file, size: 10, name: "a")))
    private static func accept(_ offset: UInt64, _ limit: UInt64) -> Frame {
        .resource(.accept(ResourceAccept(id: id, offset: offset, limit: limit)))
    }
    private static func have(_ offset: UInt64) -> Frame {
        .resource(.have(ResourceHave(id: id, offset: offset, digest: [UInt8](repeating: 0, count: 16))))
    }
    private static func from(_ offset: UInt64) -> Frame { .resource(.from(ResourceFrom(id: id, offset: offset))) }
    private static func chunk(_ offset: UInt64, _ count: Int) -> Frame {
        .resource(.chunk(ResourceChunk(id: id, offset: offset, data: ByteBuffer(repeating: 0xAA, count: count))))
    }
    private static let end = Frame.resource(.end(ResourceEnd(id: id, algorithm: .xxh3, digest: [UInt8](repeating: 0, count: 16))))
    private static let done = Frame.resource(.done(id))
    private static let refuse = Frame.resource(.refuse(ResourceRefuse(id: id, refusal: Refusal(code: .declined))))
    private static let cancel = Frame.resource(.cancel(ResourceRefuse(id: id, refusal: Refusal(code: .cancelled))))

    private static let offerWithAttributes = Frame.resource(
        .offer(
            ResourceOffer(
                session: Fixtures.session, id: id, kind: .file, size: 10, name: "a", attributes: FileAttributes(seconds: 1, nanoseconds: 2))
        ))

    /// From the offer to the accept.
    static func offers() -> [ConnectionCase] {
        [
            ConnectionCase("a file is offered with its attributes", takesAttributes: true, [got(offerWithAttributes), .sent(refuse)]),
            ConnectionCase(
                "attributes that one side does not know", takesAttributes: false,
                [.held(offerWithAttributes), .sent(offer), wrong(offerWithAttributes)]),
            ConnectionCase("an id is offered once", [got(offer), wrong(offer)]),
            ConnectionCase("an id that was refused is not offered again", [got(offer), .sent(refuse), wrong(offer)]),
            ConnectionCase("an id of this side's is not offered", [.sent(offer), wrong(offer)]),
            ConnectionCase("nor one of this side's that is over", [.sent(offer), got(refuse), wrong(offer)]),
            ConnectionCase("a first accept is for the start", [.sent(offer), got(accept(0, 4))]),
            ConnectionCase("a first accept in the middle, without have", [.sent(offer), wrong(accept(4, 10))]),
            ConnectionCase("a first accept for a data connection in the middle, without have", [.sent(offer), wrong(accept(4, 4))]),
            ConnectionCase(
                "this side accepts from the start", [got(offer), .held(accept(4, 10)), .held(accept(0, 11)), .sent(accept(0, 10))]),
            ConnectionCase("an accept beyond the size", [.sent(offer), wrong(accept(0, 11))]),
            ConnectionCase("an accept of nothing", [wrong(accept(0, 1))]),
            ConnectionCase("a peer does not accept its own offer", [got(offer), wrong(accept(0, 1))]),
            ConnectionCase("an offer of what is here is done", [.sent(offer), got(done), wrong(done)]),
            ConnectionCase("this side says so too", [got(offer), .sent(done), late(cancel)]),
            ConnectionCase(
                "the beginning is here, and the source begins with it",
                [
                    .sent(offer), got(have(6)), .held(from(5)), .sent(from(6)), got(accept(6, 10)), .held(chunk(0, 1)), .sent(chunk(6, 4)),
                    .sent(end), got(done),
                ]),
            ConnectionCase(
                "the same from the receiver's side",
                [
                    got(offer), .sent(have(6)), .held(accept(6, 10)), got(from(6)), .held(accept(0, 10)), .sent(accept(6, 10)),
                    got(chunk(6, 4)), got(end),
                ]),
            ConnectionCase(
                "the source begins otherwise", [got(offer), .sent(have(6)), got(from(0)), .held(accept(6, 10)), .sent(accept(0, 10))]),
            ConnectionCase("a from that is neither", [got(offer), .sent(have(6)), wrong(from(5))]),
            ConnectionCase("a from that nobody asked for", [got(offer), wrong(from(0))]),
            ConnectionCase("a have of more than was offered", [.sent(offer), wrong(have(11))]),
            ConnectionCase("a have behind an accept", [.sent(offer), got(accept(0, 10)), wrong(have(5))]),
            ConnectionCase("a second have", [.sent(offer), got(have(5)), wrong(have(5))]),
            ConnectionCase("an accept before from", [.sent(offer), got(have(6)), wrong(accept(6, 10))]),
            ConnectionCase("an accept of another offset than from's", [.sent(offer), got(have(6)), .sent(from(6)), wrong(accept(0, 10))]),
        ]
    }

    /// From the accept to the end.
    static func resources() -> [ConnectionCase] {
        [
            ConnectionCase(
                "a file, received",
                [
                    got(offer), .sent(accept(0, 4)), got(chunk(0, 3)), got(chunk(3, 1)), .sent(accept(4, 10)), got(chunk(4, 6)), got(end),
                    .held(accept(10, 10)), .sent(done), late(cancel), wrong(cancel),
                ]),
            ConnectionCase(
                "a file, sent",
                [
                    .sent(offer), .held(chunk(0, 1)), got(accept(0, 4)), .held(chunk(0, 5)), .held(chunk(1, 1)), .sent(chunk(0, 4)),
                    .held(end),
                    got(accept(2, 10)), .sent(chunk(4, 6)), .sent(end), got(accept(10, 10)), got(done),
                ]),
            ConnectionCase(
                "an accept may repeat its limit and its offset",
                [.sent(offer), got(accept(0, 4)), got(accept(0, 4)), .sent(chunk(0, 4)), got(accept(4, 4))]),
            ConnectionCase("a limit that falls", [.sent(offer), got(accept(0, 6)), wrong(accept(0, 5))]),
            ConnectionCase(
                "an offset that falls", [.sent(offer), got(accept(0, 6)), .sent(chunk(0, 4)), got(accept(3, 6)), wrong(accept(2, 8))]),
            ConnectionCase("an offset beyond what was sent", [.sent(offer), got(accept(0, 6)), .sent(chunk(0, 4)), wrong(accept(5, 8))]),
            ConnectionCase("a chunk before the accept", [got(offer), wrong(chunk(0, 1))]),
            ConnectionCase("a chunk beyond the limit", [got(offer), .sent(accept(0, 4)), wrong(chunk(0, 5))]),
            ConnectionCase("a chunk that leaves some out", [got(offer), .sent(accept(0, 4)), wrong(chunk(1, 1))]),
            ConnectionCase("a chunk that comes twice", [got(offer), .sent(accept(0, 4)), got(chunk(0, 2)), wrong(chunk(0, 2))]),
            ConnectionCase("a chunk of nothing known", [wrong(chunk(0, 1))]),
            ConnectionCase("an end before every byte", [got(offer), .sent(accept(0, 10)), got(chunk(0, 9)), wrong(end)]),
            ConnectionCase("an end comes once", [got(offer), .sent(accept(0, 10)), got(chunk(0, 10)), got(end), wrong(end)]),
            ConnectionCase("done before the end", [.sent(offer), got(accept(0, 10)), wrong(done)]),
            ConnectionCase(
                "chunks under way at this side's cancel are dropped, within the window",
                [
                    got(offer), .sent(accept(0, 10)), got(chunk(0, 2)), .sent(cancel), late(chunk(2, 4)), late(chunk(6, 4)), late(end),
                    wrong(end),
                ]),
            ConnectionCase("and no others", [got(offer), .sent(accept(0, 4)), .sent(cancel), wrong(chunk(0, 5))]),
            ConnectionCase("nothing follows the sender's cancel", [got(offer), .sent(accept(0, 4)), got(cancel), wrong(chunk(0, 1))]),
            ConnectionCase("the sender's cancel may cross the receiver's, once", [got(offer), .sent(refuse), late(cancel), wrong(cancel)]),
            ConnectionCase(
                "a from under way at this side's refusal", [got(offer), .sent(have(6)), .sent(refuse), late(from(6)), wrong(from(6))]),
            ConnectionCase(
                "after its own cancel a sender ignores accepts, and one end",
                [.sent(offer), .sent(cancel), late(accept(0, 4)), late(accept(0, 10)), late(have(3)), late(refuse), wrong(refuse)]),
            ConnectionCase(
                "a refusal ends it, also when it was accepted",
                [.sent(offer), got(accept(0, 10)), got(refuse), .held(chunk(0, 1)), wrong(refuse)]),
        ]
    }

    /// Over data connections.
    static func elsewhere() -> [ConnectionCase] {
        [
            ConnectionCase(
                "the bytes come elsewhere: received", [got(offer), .sent(accept(0, 0)), .sent(accept(10, 10)), got(end), .sent(done)]),
            ConnectionCase(
                "the bytes go elsewhere: sent",
                [.sent(offer), got(accept(0, 0)), .held(chunk(0, 1)), .held(end), got(accept(10, 10)), .sent(end), got(done)]),
            ConnectionCase("an end before the accept for the size", [got(offer), .sent(accept(0, 0)), wrong(end)]),
            ConnectionCase("a chunk meanwhile", [got(offer), .sent(accept(0, 0)), wrong(chunk(0, 1))]),
            ConnectionCase(
                "it begins again on another data connection",
                [.sent(offer), got(accept(0, 0)), got(accept(4, 4)), got(accept(4, 4)), got(accept(10, 10)), .sent(end)]),
            ConnectionCase(
                "it begins again behind what was said", [.sent(offer), got(accept(0, 0)), got(accept(4, 4)), wrong(accept(3, 3))]),
            ConnectionCase(
                "it goes on over the control connection",
                [
                    .sent(offer), got(accept(0, 0)), got(accept(4, 8)), .sent(chunk(4, 4)), got(accept(8, 10)), .sent(chunk(8, 2)),
                    .sent(end),
                ]),
            ConnectionCase("and not back", [.sent(offer), got(accept(0, 0)), got(accept(4, 8)), wrong(accept(4, 4))]),
            ConnectionCase(
                "the rest of a resumed one",
                [.sent(offer), got(have(6)), .sent(from(6)), got(accept(6, 6)), got(accept(10, 10)), .sent(end)]),
        ]
    }
}
