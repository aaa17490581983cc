import EarshotWire
import Testing

@testable import EarshotCore
@testable import EarshotWire

/// A core in a session with a simulated peer, with its commands to the movers of streams.
struct StreamBench {
    var bench: CoreBench
    let peer: PeerID
    private(set) var link: LinkID
    let session: SessionID
    private var streams: UInt64 = 0

    /// `knows`: whether the peer supports moving streams to data connections.
    init(_ peer: PeerID = peerID(1), knows: Bool = true) throws {
        self.peer = peer
        (self.bench, self.link, self.session) = try CoreBench.inSession(with: peer, extensions: knows ? [.streamReroute] : [])
    }

    /// Replaces the peer's lost connection with another.
    mutating func reconnect() throws {
        self.bench.lose(self.link)
        try self.connect()
    }

    mutating func connect() throws {
        self.link = try self.bench.resume(self.session, with: self.peer, extensions: [.streamReroute])
    }

    // MARK: Calls

    @discardableResult
    mutating func call(_ request: StreamRequest) -> Answer? { self.bench.call(.stream(request)) }

    /// Opens a stream to the peer. Returns its id and its call.
    mutating func open(_ name: String = "x") throws -> (id: StreamID, call: CallID) {
        let answer = self.call(.open(to: self.peer.description, name: name))
        #expect(answer == nil, "it is answered when it is over")
        return (try #require(self.bench.core.allStreams.last?.id), self.bench.lastCall)
    }

    mutating func report(_ id: StreamID, _ report: StreamReport) { self.bench.handle(.stream(id, report)) }

    // MARK: The peer's frames

    mutating func freshID() -> StreamID {
        self.streams += 1
        return StreamID(high: 9, low: self.streams)
    }

    /// Lets the peer open a stream.
    @discardableResult
    mutating func opened(_ id: StreamID? = nil, named name: String = "x", in session: SessionID? = nil) throws -> StreamID {
        let id = id ?? self.freshID()
        self.say(.stream(.open(StreamOpen(session: session ?? self.session, id: id, name: try StreamName(name)))))
        return id
    }

    mutating func say(_ frame: Frame) { self.bench.frame(frame, on: self.link) }

    mutating func abort(_ id: StreamID) { self.say(.stream(.abort(StreamRefuse(id: id, refusal: Refusal(code: .cancelled))))) }

    // MARK: Results

    mutating func sent() -> [Frame] { self.bench.sent(on: self.link) }

    /// Returns the reasons for which streams were refused since the last call.
    mutating func refusals() -> [WireErrorCode] {
        self.sent().compactMap { if case .stream(.refuse(let refuse)) = $0 { refuse.refusal.code } else { nil } }
    }

    /// Returns the limits with which streams were accepted.
    mutating func limits() -> [UInt64] {
        self.sent().compactMap { if case .stream(.accept(let accept)) = $0 { accept.limit } else { nil } }
    }

    func commands(_ id: StreamID) -> [StreamCommand] {
        self.bench.effects.compactMap { if case .stream(id, let command) = $0 { command } else { nil } }
    }

    func row(_ id: StreamID) throws -> ByteStream { try self.bench.core.stream(id) }

    var rows: [ByteStream] { self.bench.core.allStreams }
}
