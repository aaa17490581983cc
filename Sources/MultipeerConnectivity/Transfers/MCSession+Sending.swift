import Foundation
import Earshot
import NIOCore
import Synchronization

extension MCSession {
    func sendData(_ data: Data, to peerIDs: [MCPeerID], _ mode: MCSessionSendDataMode) throws {
        guard !peerIDs.isEmpty else { throw MCError(.invalidParameter, "data is sent to one peer at least") }
        switch mode {
        case .reliable:
            guard data.count <= OutgoingData.limit else {
                throw MCError(.invalidParameter, "data has at most \(OutgoingData.limit) bytes, not \(data.count)")
            }
            try self.sendReliable(data, to: peerIDs)
        case .unreliable:
            guard data.count <= OutgoingData.partLimit else {
                throw MCError(.invalidParameter, "unreliable data has at most \(OutgoingData.partLimit) bytes, not \(data.count)")
            }
            guard peerIDs.allSatisfy(self.isConnected) else { throw MCError(.notConnected) }
            let node = self.owner.engine.nodeInUse.withLock { $0 }
            let draft = MessageDraft(
                to: .peers(peerIDs.map(\.id.description)), contentType: OutgoingData.contentType, body: ByteBuffer(bytes: data),
                mode: .unreliable)
            node?.submit(draft) { _ in }
        }
    }

    private func sendReliable(_ data: Data, to peers: [MCPeerID]) throws {
        let outgoing = OutgoingData(data)
        // The other side joins parts in the order of arrival, so data from another thread must not come between them.
        try self.turn.withLock { _ in
            let token = try self.reserve(outgoing.cost, for: peers)
            guard let node = self.owner.engine.nodeInUse.withLock({ $0 }) else { throw MCError(.notConnected) }
            for peer in peers {
                for draft in outgoing.drafts(to: peer.id) {
                    let cost = OutgoingData.cost(of: draft)
                    node.submit(draft) { [weak self] outcome in
                        guard let self else { return }
                        self.release(cost, of: peer.id, token)
                        // Reliable data arrives in order or not at all, so a gap ends the connection.
                        if !outcome.isDelivered { self.owner.engine.post { await $0.decide { $0.leave(peer.id, of: token) } } }
                    }
                }
            }
        }
    }
}

/// Data to send, in one message or in several.
struct OutgoingData {
    /// The maximum size of the data of one call, and of a peer's unacknowledged data, in bytes.
    static let limit = 64 << 20
    /// The maximum size of one message, in bytes.
    static let partLimit = 1 << 20
    /// The cost of a message besides its bytes.
    private static let overhead = 512
    /// The content type of the last part, and of data in one message.
    static let contentType = "application/octet-stream"
    /// The content type of the earlier parts.
    static let partType = "application/vnd.earshot.multipeer.part"
    /// The longest timeout that the node allows, because only the connection limits the delivery.
    private static let timeout: Duration = .seconds(86_400)

    let data: Data

    init(_ data: Data) { self.data = data }

    private var count: Int { max(1, (self.data.count + Self.partLimit - 1) / Self.partLimit) }

    /// The cost that counts towards ``limit``. A call with the maximum size fits if nothing else is in flight.
    var cost: Int { min(self.data.count + self.count * Self.overhead, Self.limit) }

    static func cost(of draft: MessageDraft) -> Int { draft.body.readableBytes + Self.overhead }

    func drafts(to peer: PeerID) -> [MessageDraft] {
        let count = self.count
        return (0..<count).map { index in
            let start = self.data.startIndex + index * Self.partLimit
            let part = self.data[start..<min(start + Self.partLimit, self.data.endIndex)]
            let isLast = index == count - 1
            return MessageDraft(
                to: .peers([peer.description]), contentType: isLast ? Self.contentType : "\(Self.partType); n=\(index)",
                body: ByteBuffer(bytes: part), timeout: Self.timeout)
        }
    }
}

/// The received parts of data.
struct IncomingParts {
    private(set) var data = Data()
    private var count = 0

    /// Adds a part. Returns whether it is the next one, and within the limit.
    mutating func add(_ body: ByteBuffer, contentType: String) -> Bool {
        guard contentType == "\(OutgoingData.partType); n=\(self.count)", self.data.count + body.readableBytes <= OutgoingData.limit else {
            return false
        }
        self.count += 1
        self.data.append(contentsOf: body.readableBytesView)
        return true
    }

    /// Returns the complete data with its last part; `nil` if it exceeds the limit.
    func whole(with body: ByteBuffer) -> Data? {
        guard self.data.count + body.readableBytes <= OutgoingData.limit else { return nil }
        return self.data + Data(body.readableBytesView)
    }
}

extension MessageBatch.Outcome {
    fileprivate var isDelivered: Bool {
        guard case .success(let sent) = self else { return false }
        return sent.recipients.allSatisfy { $0.status == .delivered || $0.status == .read }
    }
}
