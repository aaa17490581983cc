import Earshot
import Foundation
import NIOCore

/// Received data and introductions.
extension PeerEngine {
    /// Handles a message from an event, unless it was already found in the inbox.
    func receivedByEvent(_ message: Message) async {
        if !self.caughtUp.contains(MessageKey(message)) { await self.received(message) }
    }

    private func received(_ message: Message) async {
        let id = message.senderID
        if message.mode == .reliable { self.underWay.insert(MessageKey(message)) }
        guard let pair = self.pairing.pairs[id] else { return await self.markRead(message) }
        if message.contentType == Introduction.contentType {
            await self.markRead(message)
            let decoded = try? MessageCoding().decode(Introduction.self, from: Array(message.body.readableBytesView))
            if let decoded { await self.decide { $0.introduced(decoded, by: id) } }
            return
        }
        guard pair.stage == .connected else {
            self.held[id, default: []].append { await $0.received(message) }
            return
        }
        if message.contentType.hasPrefix(OutgoingData.partType) {
            await self.markRead(message)
            var parts = self.parts[id] ?? IncomingParts()
            // Some reliable data is missing.
            guard parts.add(message.body, contentType: message.contentType) else { return await self.decide { $0.end(id) } }
            self.parts[id] = parts
            return
        }
        let whole: Data?
        if let parts = self.parts[id], message.mode == .reliable {
            self.parts[id] = nil
            whole = parts.whole(with: message.body)
        } else {
            whole = Data(message.body.readableBytesView)
        }
        guard let data = whole, let session = self.sessions[pair.token]?.value else { return await self.decide { $0.end(id) } }
        let peer = pair.peer
        // The sender learns of the receipt after the program has received the data.
        session.call(pair.token, then: { [weak self] in self?.post { await $0.markRead(message) } }) {
            $1.session($0, didReceive: data, fromPeer: peer)
        }
    }

    private func markRead(_ message: Message) async {
        guard message.mode == .reliable, let node = try? self.started() else { return }
        _ = try? await node.markRead([(id: message.id, from: message.senderID)])
        self.underWay.remove(MessageKey(message))
    }

    /// Handles unread messages that are not being delivered, after their events were lost.
    func catchUpOnMessages() async {
        self.caughtUp = []
        guard let node = try? self.started() else { return }
        var place: Int64? = 0
        while let start = place, let page = try? await node.messagePage(state: .unread, after: start, limit: 1000) {
            for message in page.messages where !self.underWay.contains(MessageKey(message)) {
                self.caughtUp.insert(MessageKey(message))
                await self.received(message)
            }
            place = page.next
        }
    }

    func send(_ introduction: Introduction, to id: PeerID) {
        guard let node = try? self.started(), let body = try? introduction.encoded() else { return }
        node.submit(
            MessageDraft(to: .peers([id.description]), contentType: Introduction.contentType, body: ByteBuffer(bytes: body))
        ) { _ in }
    }

    /// Returns the data with which another machine can connect to this peer.
    func connectionData() async throws -> Data {
        let status = await (try self.started()).status()
        let place = ConnectionData(id: self.id, addresses: Array(status.addresses.prefix(Introduction.addressLimit)))
        return try place.encoded()
    }
}

/// The key of a message. Two senders may use the same id.
struct MessageKey: Hashable {
    private let id: MessageID
    private let sender: PeerID

    init(_ message: Message) {
        self.id = message.id
        self.sender = message.senderID
    }
}

/// A peer's id and addresses, which programs exchange by their own means.
struct ConnectionData: Codable, Sendable {
    var id: PeerID
    var addresses: [String]

    /// The maximum size of received data, in bytes.
    private static let limit = 4096

    init(id: PeerID, addresses: [String]) {
        self.id = id
        self.addresses = addresses
    }

    init(_ data: Data) throws {
        guard data.count <= Self.limit else { throw MCError(.invalidParameter) }
        self = try MessageCoding().decode(Self.self, from: Array(data))
    }

    func encoded() throws -> Data { Data(try MessageCoding().encode(self)) }
}
