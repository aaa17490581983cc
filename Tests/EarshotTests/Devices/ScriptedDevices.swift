import EarshotCore
import EarshotWaiting
import EarshotWire
import NIOCore
import Synchronization

@testable import Earshot

/// A transport of LocalSend without a network: the test makes the requests of devices, and answers those of the node.
final class ScriptedDevices: DeviceTransport {
    /// A file as a device has received it.
    struct Received: Sendable, Hashable {
        let name: String
        let bytes: [UInt8]
    }

    private struct State {
        var requests: (any DeviceRequests)?
        var offers: [[DeviceFile]] = []
        var received: [Received] = []
        /// The sizes of the pieces of all bodies.
        var pieces: [Int] = []
        var pins: [String?] = []
        var cancelled: [String] = []
        var registered: [PeerAddress] = []
    }

    private let state = Mutex(State())
    /// The first upload waits for this.
    private let gate: OneShot<Void>?
    private let answer: @Sendable ([DeviceFile]) throws(DeviceFailure) -> DeviceOfferAnswer

    /// Creates a transport whose devices answer offers so: by default they accept every file.
    init(
        gate: OneShot<Void>? = nil,
        answer: @escaping @Sendable ([DeviceFile]) throws(DeviceFailure) -> DeviceOfferAnswer = { .upload(session: "s", tokens: .all($0)) }
    ) {
        self.gate = gate
        self.answer = answer
    }

    /// The node, once it has started.
    var node: any DeviceRequests {
        get throws { try self.state.withLock { $0.requests }.orThrow() }
    }
    var offers: [[DeviceFile]] { self.state.withLock { $0.offers } }
    var pieces: [Int] { self.state.withLock { $0.pieces } }
    var received: [Received] { self.state.withLock { $0.received } }
    var pins: [String?] { self.state.withLock { $0.pins } }
    var cancelled: [String] { self.state.withLock { $0.cancelled } }
    var registered: [PeerAddress] { self.state.withLock { $0.registered } }

    func start(_ requests: any DeviceRequests) async throws -> UInt16 {
        self.state.withLock { $0.requests = requests }
        return 53317
    }

    var fingerprint: String? { nil }
    var announcementFailure: String? { nil }
    var droppedAnnouncements: DroppedAnnouncements { DroppedAnnouncements() }
    func run() async {
        let never = AsyncStream<Never> { _ in }
        for await _ in never {}
    }
    func announce(_ name: String) async {}
    func answerByDatagram(_ name: String) async {}

    func register(at address: PeerAddress, name: String) async throws(DeviceFailure) -> (PeerID, DeviceInfo) {
        self.state.withLock { $0.registered.append(address) }
        throw .unreachable("nobody is there")
    }

    func offer(_ files: [DeviceFile], to target: DeviceTarget, name: String, pin: String?) async throws(DeviceFailure) -> DeviceOfferAnswer
    {
        self.state.withLock {
            $0.offers.append(files)
            $0.pins.append(pin)
        }
        return try self.answer(files)
    }

    func upload(
        _ upload: DeviceUpload, size: UInt64, to target: DeviceTarget, body: any AsyncSequence<ByteBuffer, any Error> & Sendable
    ) async throws(DeviceFailure) {
        await self.gate?.value()
        var bytes: [UInt8] = []
        do {
            for try await piece in body {
                bytes += piece.readableBytesView
                self.state.withLock { $0.pieces.append(piece.readableBytes) }
            }
        } catch {
            throw .lost("the body failed")
        }
        guard UInt64(bytes.count) == size else { throw .refused(status: 500) }
        self.state.withLock { state in
            let name = state.offers.last?.first { $0.id == upload.file }?.name ?? "?"
            state.received.append(Received(name: name, bytes: bytes))
        }
    }

    func cancel(session: String, at target: DeviceTarget) async throws(DeviceFailure) {
        self.state.withLock { $0.cancelled.append(session) }
    }
}

extension [DeviceToken] {
    /// The tokens of a device that accepts every file.
    static func all(_ files: [DeviceFile]) -> Self { files.map { DeviceToken(file: $0.id, token: "t\($0.id)") } }
}

extension Optional {
    fileprivate func orThrow() throws -> Wrapped {
        guard let value = self else { throw EarshotError(.unavailable, "the node has not started") }
        return value
    }
}

/// The body of an upload in pieces. It fails at its end if `isCut`.
struct PiecesOfBody: AsyncSequence, Sendable {
    typealias Element = ByteBuffer

    let pieces: [ByteBuffer]
    var isCut = false

    init(_ pieces: [String], isCut: Bool = false) {
        self.pieces = pieces.map { ByteBuffer(string: $0) }
        self.isCut = isCut
    }

    /// Cuts a body into pieces of 7 bytes.
    init(cutting body: ByteBuffer) {
        var body = body
        var pieces: [ByteBuffer] = []
        while let piece = body.readSlice(length: Swift.min(7, body.readableBytes)), piece.readableBytes > 0 { pieces.append(piece) }
        self.pieces = pieces
    }

    struct Iterator: AsyncIteratorProtocol {
        var left: [ByteBuffer]
        let isCut: Bool

        mutating func next() async throws -> ByteBuffer? {
            guard !self.left.isEmpty else {
                if self.isCut { throw CancellationError() }
                return nil
            }
            return self.left.removeFirst()
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(left: self.pieces, isCut: self.isCut) }
}
