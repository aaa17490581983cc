import EarshotWire
import Testing

@testable import EarshotCore
@testable import EarshotWire

/// A core in a session with a simulated peer, with its commands to the movers of resources.
struct TransferBench {
    var bench: CoreBench
    let peer: PeerID
    private(set) var link: LinkID
    let session: SessionID
    private var resources: UInt64 = 0

    init(_ peer: PeerID = peerID(1), change: (inout CoreSettings) -> Void = { _ in }) throws {
        self.peer = peer
        (self.bench, self.link, self.session) = try CoreBench.inSession(with: peer, change: change)
    }

    mutating func lose() { self.bench.lose(self.link) }

    mutating func connect(extensions: [HelloExtension] = []) throws {
        self.link = try self.bench.resume(self.session, with: self.peer, extensions: extensions)
    }

    // MARK: Calls

    mutating func freshID() -> ResourceID {
        self.resources += 1
        return ResourceID(high: 9, low: self.resources)
    }

    func draft(
        _ id: ResourceID, kind: Resource.Kind = .file, size: UInt64 = 10, source: StoredTransfer.Source = .path, isQueued: Bool = false,
        attributes: FileAttributes? = nil
    ) -> ResourceDraft {
        ResourceDraft(
            id: id, to: Conversation(with: self.peer), name: "x", kind: kind, size: size, path: "/x", source: source, stamp: "1",
            isQueued: isQueued, attributes: attributes)
    }

    /// Sends a resource whose source opens at once.
    mutating func send(size: UInt64 = 10, source: StoredTransfer.Source = .path) -> ResourceID {
        let id = self.freshID()
        let draft = self.draft(id, size: size, source: source)
        self.bench.call(.resource(source == .body ? .sendBody(draft) : .send([draft])))
        self.report(id, .opened(source == .body ? nil : OpenedSource(size: size, stamp: "1")))
        return id
    }

    /// Lets the peer offer a resource.
    mutating func offered(size: UInt64 = 10, kind: ResourceOffer.Kind = .file, name: String = "x", id: ResourceID? = nil) -> ResourceID {
        let id = id ?? self.freshID()
        self.say(.resource(.offer(ResourceOffer(session: self.session, id: id, kind: kind, size: size, name: name))))
        return id
    }

    /// Returns a resource that has arrived completely, and is not on disk yet.
    mutating func whole() -> ResourceID {
        let id = self.offered()
        self.report(id, .held(nil))
        self.report(id, .began)
        self.report(id, .written(to: 10))
        self.say(.resource(.end(ResourceEnd(id: id, algorithm: .xxh3, digest: [1]))))
        return id
    }

    /// Returns a resource that is complete on disk, and not recorded yet.
    mutating func settled() -> ResourceID {
        let id = self.whole()
        self.report(id, .settled("xxh3:01"))
        return id
    }

    mutating func report(_ id: ResourceID, _ report: TransferReport) { self.bench.handle(.transfer(id, report)) }
    mutating func say(_ frame: Frame) { self.bench.frame(frame, on: self.link) }

    // MARK: Results

    mutating func sent() -> [Frame] { self.bench.sent(on: self.link) }
    func orders(_ id: ResourceID) -> [TransferCommand] { self.bench.orders[id] ?? [] }
    func row(_ id: ResourceID) throws -> Resource { try self.bench.core.resource(id, at: self.bench.now.monotonic) }

    mutating func refusals() -> [WireErrorCode] {
        self.sent().compactMap { if case .resource(.refuse(let refuse)) = $0 { refuse.refusal.code } else { nil } }
    }

    var finished: [Resource] { self.bench.events.compactMap { if case .resourceFinished(let row) = $0 { row } else { nil } } }
}
