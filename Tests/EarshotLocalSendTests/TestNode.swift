import EarshotCore
import EarshotWaiting
import Logging
import NIOCore
import Synchronization

@testable import Earshot
@testable import EarshotLocalSend

/// A node whose decisions the test makes. It records each request.
final class TestNode: DeviceRequests {
    enum Call: Sendable, Equatable {
        case announced(DeviceInfo, PeerAddress, isAnswer: Bool)
        case registered(DeviceInfo, DeviceSender)
        case pin(String?)
        case offered(DeviceOffer, DeviceSender)
        case uploaded(DeviceUpload, DeviceSender, [UInt8])
        case uploadFailed
        case uploadBegan
        case cancelled(String?, DeviceSender)
        case offerWithdrawn
        case linksChanged
    }

    struct Decisions: Sendable {
        var name = "alice"
        var pin: DeviceRefusal?
        var offer: Result<DeviceOfferAnswer, DeviceRefusal> = .success(.nothingToSend)
        /// Whether an offer waits until its connection ends.
        var holdsOffer = false
        var upload: DeviceRefusal?
        /// Whether an upload is answered before its body is read.
        var answersUploadAtOnce = false
        /// Whether the bytes of an upload are only counted.
        var discardsUpload = false
        var cancel: DeviceRefusal?
    }

    private let decisions: Mutex<Decisions>
    private let recorded = Mutex<[Call]>([])
    private let changes = Changes()

    init(_ decisions: Decisions = Decisions()) { self.decisions = Mutex(decisions) }

    func decide(_ change: (inout Decisions) -> Void) { self.decisions.withLock { change(&$0) } }

    var calls: [Call] { self.recorded.withLock { $0 } }

    /// Waits for a call that `match` accepts.
    @discardableResult
    func call(_ match: @escaping @Sendable (Call) -> Bool) async -> Call? {
        while !Task.isCancelled {
            let seen = self.changes.count
            if let call = self.calls.first(where: match) { return call }
            _ = await self.changes.wait(after: seen)
        }
        return nil
    }

    private func record(_ call: Call) {
        self.recorded.withLock { $0.append(call) }
        self.changes.tell()
    }

    private var current: Decisions { self.decisions.withLock { $0 } }

    func deviceName() async -> String { self.current.name }

    func deviceLinksChanged() { self.record(.linksChanged) }

    func deviceAnnounced(_ info: DeviceInfo, from address: PeerAddress, isAnswer: Bool) {
        self.record(.announced(info, address, isAnswer: isAnswer))
    }

    func deviceRegistered(_ info: DeviceInfo, by sender: DeviceSender) { self.record(.registered(info, sender)) }

    func checkDevicePIN(_ pin: String?, of sender: DeviceSender) async throws(DeviceRefusal) {
        self.record(.pin(pin))
        if let refusal = self.current.pin { throw refusal }
    }

    func deviceOffered(_ offer: DeviceOffer, by sender: DeviceSender) async throws(DeviceRefusal) -> DeviceOfferAnswer {
        self.record(.offered(offer, sender))
        if self.current.holdsOffer {
            _ = await Changes().wait(after: 0)
            self.record(.offerWithdrawn)
            throw .declined
        }
        return try self.current.offer.get()
    }

    func deviceUploads(
        _ upload: DeviceUpload, by sender: DeviceSender, body: any AsyncSequence<ByteBuffer, any Error> & Sendable
    ) async throws(DeviceRefusal) {
        let decisions = self.current
        self.record(.uploadBegan)
        if decisions.answersUploadAtOnce { throw decisions.upload ?? .declined }
        var bytes: [UInt8] = []
        do {
            for try await piece in body where !decisions.discardsUpload { bytes += Array(piece.readableBytesView) }
        } catch {
            self.record(.uploadFailed)
            throw .failed
        }
        self.record(.uploaded(upload, sender, bytes))
        if let refusal = decisions.upload { throw refusal }
    }

    func deviceCancels(_ session: String?, by sender: DeviceSender) async throws(DeviceRefusal) {
        self.record(.cancelled(session, sender))
        if let refusal = self.current.cancel { throw refusal }
    }
}

/// A logger that keeps provoked errors off the console.
var quietLogger: Logger {
    var logger = Logger(label: "test")
    logger.logLevel = .critical
    return logger
}

/// Runs a transport on a free port of the loopback interface for the time of `body`.
func withDevice<Result>(
    _ node: TestNode = TestNode(), _ body: (LocalSendTransport, TestNode, UInt16) async throws -> Result
) async throws -> Result {
    let device = LocalSendTransport(.init(port: 0, multicastPort: nil, stateDirectory: nil), logger: quietLogger)
    let port = try await device.start(node)
    return try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { await device.run() }
        let result = try await body(device, node, port)
        group.cancelAll()
        return result
    }
}

/// The address of a device on the loopback interface.
func loopback(_ port: UInt16) -> PeerAddress { PeerAddress(host: "127.0.0.1", zone: nil, port: port) }

/// A body in pieces.
struct TestBody: AsyncSequence, Sendable {
    typealias Failure = any Error
    let pieces: [ByteBuffer]

    init(_ pieces: [ByteBuffer]) { self.pieces = pieces }
    init(_ text: String) { self.pieces = [ByteBuffer(string: text)] }

    struct AsyncIterator: AsyncIteratorProtocol {
        var rest: ArraySlice<ByteBuffer>
        mutating func next() async throws -> ByteBuffer? { self.rest.popFirst() }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(rest: self.pieces[...]) }
}
