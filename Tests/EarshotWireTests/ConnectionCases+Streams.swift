import EarshotWire
import NIOCore

/// The cases of streams, all of one.
extension ConnectionCase {
    private static let id = Fixtures.stream
    private static func open() throws -> Frame {
        .stream(.open(StreamOpen(session: Fixtures.session, id: id, name: try StreamName("a"))))
    }
    private static func accept(_ limit: UInt64) -> Frame { .stream(.accept(StreamAccept(id: id, limit: limit))) }
    private static func data(_ count: Int) -> Frame { .stream(.data(StreamData(id: id, data: ByteBuffer(repeating: 0xAA, count: count)))) }
    private static func end(_ size: UInt64) -> Frame { .stream(.end(StreamEnd(id: id, size: size))) }
    private static let done = Frame.stream(.done(id))
    private static let refuse = Frame.stream(.refuse(StreamRefuse(id: id, refusal: Refusal(code: .timedOut))))
    private static let abort = Frame.stream(.abort(StreamRefuse(id: id, refusal: Refusal(code: .cancelled))))
    private static func reroute(_ offset: UInt64) -> Frame { .stream(.reroute(StreamReroute(id: id, offset: offset))) }
    private static func rerouted(_ offset: UInt64) -> Frame { .stream(.rerouted(StreamReroute(id: id, offset: offset))) }

    static func streams() throws -> [ConnectionCase] {
        let open = try self.open()
        return [
            ConnectionCase(
                "a stream, received",
                [
                    got(open), .sent(accept(4)), got(data(4)), .sent(accept(8)), got(data(2)), got(end(6)), .held(accept(9)), .sent(done),
                    late(abort), wrong(abort),
                ]),
            ConnectionCase(
                "a stream, sent",
                [
                    .sent(open), .held(data(1)), got(accept(4)), .held(data(5)), .sent(data(4)), got(accept(8)), .sent(data(2)),
                    .held(end(5)), .sent(end(6)),
                    got(accept(8)), got(done),
                ]),
            ConnectionCase("an empty one", [got(open), .sent(accept(0)), got(end(0)), .sent(done)]),
            ConnectionCase("an id is opened once", [got(open), wrong(open)]),
            ConnectionCase("an id that was refused is not opened again", [got(open), .sent(refuse), wrong(open)]),
            ConnectionCase("an id of this side's is not opened", [.sent(open), wrong(open)]),
            ConnectionCase("nor one of this side's that is over", [.sent(open), got(refuse), wrong(open)]),
            ConnectionCase(
                "a resource's id may be a stream's: the two have spaces of their own",
                [
                    got(open),
                    got(
                        .resource(
                            .offer(
                                ResourceOffer(
                                    session: Fixtures.session, id: ResourceID(high: id.high, low: id.low), kind: .file, size: 1, name: "")))
                    ),
                ]),
            ConnectionCase("an accept may repeat its limit", [.sent(open), got(accept(4)), got(accept(4)), got(accept(5))]),
            ConnectionCase("a limit that falls", [.sent(open), got(accept(4)), wrong(accept(3))]),
            ConnectionCase("an accept of nothing", [wrong(accept(4))]),
            ConnectionCase("data before the accept", [got(open), wrong(data(1))]),
            ConnectionCase("data beyond the limit", [got(open), .sent(accept(4)), wrong(data(5))]),
            ConnectionCase("an end of another size", [got(open), .sent(accept(4)), got(data(2)), wrong(end(3))]),
            ConnectionCase("data behind the end", [got(open), .sent(accept(4)), got(data(2)), got(end(2)), wrong(data(1))]),
            ConnectionCase("done before the end", [.sent(open), got(accept(4)), wrong(done)]),
            ConnectionCase("a refusal of one that was accepted", [.sent(open), got(accept(4)), wrong(refuse)]),
        ]
    }

    static func endsOfStreams() throws -> [ConnectionCase] {
        let open = try self.open()
        return [
            ConnectionCase("the receiver refuses", [.sent(open), got(refuse), .held(data(1)), wrong(refuse)]),
            ConnectionCase("the receiver aborts", [.sent(open), got(accept(4)), got(abort), .held(data(1)), wrong(abort)]),
            ConnectionCase("the sender aborts", [got(open), .sent(accept(4)), got(abort), wrong(data(1))]),
            ConnectionCase(
                "data under way at this side's abort is dropped, within the window",
                [got(open), .sent(accept(4)), got(data(1)), .sent(abort), late(data(3)), late(end(4)), wrong(end(4))]),
            ConnectionCase("and no more", [got(open), .sent(accept(4)), .sent(abort), wrong(data(5))]),
            ConnectionCase(
                "after its own abort a sender ignores accepts, and one end",
                [.sent(open), .sent(abort), late(accept(4)), late(accept(8)), late(refuse), wrong(refuse)]),
            ConnectionCase("aborts may cross, once", [got(open), .sent(accept(4)), .sent(abort), late(abort), wrong(abort)]),
        ]
    }

    /// Four bytes on the control connection, and the next on a data connection.
    private static func moved() throws -> [Step] {
        [got(try open()), .sent(accept(8)), got(data(3)), got(reroute(3)), got(data(1)), got(rerouted(4))]
    }
    private static func movedOut() throws -> [Step] {
        [.sent(try open()), got(accept(8)), .sent(data(3)), .sent(reroute(3)), .sent(data(1)), .sent(rerouted(4))]
    }

    static func routes() throws -> [ConnectionCase] {
        let begun = [got(try open()), .sent(accept(8)), got(data(3))]
        return [
            ConnectionCase("a stream moves, and ends there", try moved() + [.sent(accept(12)), got(end(12)), .sent(done)]),
            ConnectionCase("the same, sent", try movedOut() + [.held(data(1)), .sent(end(8)), got(done)]),
            ConnectionCase("it stays where no connection comes of it", begun + [got(reroute(3)), got(data(5)), got(end(8))]),
            ConnectionCase("it is asked for once", begun + [got(reroute(3)), wrong(reroute(3))]),
            ConnectionCase("it is asked for at the next byte", begun + [wrong(reroute(2))]),
            ConnectionCase("it is asked for once it is accepted", [got(try open()), wrong(reroute(0))]),
            ConnectionCase("it moves at the next byte", begun + [got(reroute(3)), wrong(rerouted(2))]),
            ConnectionCase("it moves where it was asked for", begun + [wrong(rerouted(3))]),
            ConnectionCase("data on the control connection meanwhile", try moved() + [wrong(data(1))]),
            ConnectionCase("an end beyond the limit", try moved() + [wrong(end(9))]),
            ConnectionCase("an end before where it moved", try moved() + [wrong(end(3))]),
            ConnectionCase(
                "it is called back, and goes on here",
                try moved() + [.sent(reroute(6)), got(rerouted(6)), got(data(2)), got(end(8)), .sent(done)]),
            ConnectionCase(
                "an end that crossed the call comes again",
                try moved() + [.sent(reroute(6)), late(end(8)), got(rerouted(6)), got(data(2)), got(end(8))]),
            ConnectionCase("it crosses once", try moved() + [.sent(reroute(6)), late(end(8)), wrong(end(8))]),
            ConnectionCase(
                "called back after its end", try moved() + [got(end(8)), .sent(reroute(6)), got(rerouted(6)), got(data(2)), got(end(8))]),
            ConnectionCase("data before it says that it is back", try moved() + [.sent(reroute(6)), wrong(data(1))]),
            ConnectionCase("back at another byte", try moved() + [.sent(reroute(6)), wrong(rerouted(5))]),
            ConnectionCase("it does not move twice", try moved() + [.sent(reroute(6)), got(rerouted(6)), wrong(reroute(6))]),
            ConnectionCase("it is called back once", try movedOut() + [got(reroute(6)), wrong(reroute(6))]),
            ConnectionCase("called back to before where it moved", try movedOut() + [wrong(reroute(3))]),
            ConnectionCase("called back beyond the limit", try movedOut() + [wrong(reroute(9))]),
            ConnectionCase("called back to what was taken", try movedOut() + [got(accept(14)), wrong(reroute(5))]),
            ConnectionCase(
                "called back, sent again",
                try movedOut() + [.sent(end(8)), got(reroute(6)), .held(data(1)), .sent(rerouted(6)), .sent(data(2)), .sent(end(8))]),
            ConnectionCase("what crosses this side's abort", try moved() + [.sent(abort), late(end(8)), wrong(data(1))]),
            ConnectionCase("a call that crosses this side's abort", try movedOut() + [.sent(abort), late(reroute(6))]),
            ConnectionCase("asked for by a peer whose hello lacks the extension", reroutesStreams: false, begun + [wrong(reroute(3))]),
            ConnectionCase("moved by a peer whose hello lacks the extension", reroutesStreams: false, begun + [wrong(rerouted(3))]),
            ConnectionCase(
                "called back by a peer whose hello lacks the extension", reroutesStreams: false,
                [.sent(try open()), got(accept(8)), .sent(data(3)), .held(reroute(3)), wrong(reroute(3))]),
        ]
    }
}
