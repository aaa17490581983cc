import EarshotWire
import Foundation
import NIOCore
import OrderedCollections

@testable import Earshot
@testable import EarshotCore

/// A state directory that is deleted with its test.
final class StateDirectory: Sendable {
    let path: String

    /// Creates a directory among the temporary files, or in another directory.
    init(in parent: URL = FileManager.default.temporaryDirectory) throws {
        self.path = parent.appendingPathComponent("earshot-state-\(UUID())").path
        try FileManager.default.createDirectory(atPath: self.path, withIntermediateDirectories: true)
    }
    deinit { try? FileManager.default.removeItem(atPath: self.path) }

    /// Returns a copy of the directory as a killed process would leave it.
    func copied() throws -> StateDirectory {
        let copy = try StateDirectory()
        for name in try FileManager.default.contentsOfDirectory(atPath: self.path) where !name.hasSuffix("-shm") {
            try FileManager.default.copyItem(atPath: "\(self.path)/\(name)", toPath: "\(copy.path)/\(name)")
        }
        return copy
    }

    func mode(_ name: String) throws -> Int? {
        let attributes = try FileManager.default.attributesOfItem(atPath: "\(self.path)/\(name)")
        return (attributes[.posixPermissions] as? NSNumber)?.intValue
    }

    func names(_ folder: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "\(self.path)/\(folder)").sorted()
    }
}

/// Returns a peer id, the same one for the same number.
func peerID(_ number: UInt8) -> PeerID { PeerID(subjectPublicKeyInfo: [number]) }

/// Returns a message with the given number, the same one for the same arguments.
func inboxMessage(_ number: UInt64, from sender: UInt8 = 1, size: Int = 8, isResumed: Bool = true) -> InboxMessage {
    InboxMessage(
        id: MessageID(high: UInt64(sender), low: number), senderID: peerID(sender), senderName: "", contentType: "",
        body: ByteBuffer(repeating: UInt8(truncatingIfNeeded: number), count: size), sentAt: Date(timeIntervalSince1970: 1_700_000_000.25),
        isResumed: isResumed)
}

extension Store {
    func messages(state: Message.ReadState?, from sender: PeerID?, limit: Int) throws(EarshotError) -> [Message] {
        try self.messagePage(state: state, from: sender, limit: limit).messages
    }
}

extension InboxMessage {
    /// Creates a message with a `Date`.
    init(
        id: MessageID, senderID: PeerID, senderName: String, contentType: String, body: ByteBuffer, sentAt: Date, isResumed: Bool = true,
        followsRefusal: Bool = false, inReplyTo: MessageID? = nil
    ) {
        self.init(
            id: id, senderID: senderID, senderName: senderName, contentType: contentType, body: body, sent: WallTime(sentAt),
            isResumed: isResumed, followsRefusal: followsRefusal, inReplyTo: inReplyTo)
    }
}

extension StoredPeer {
    /// Creates a peer with `Date`s.
    init(
        id: PeerID, name: String, alias: DisplayName? = nil, trust: Trust, isTLSPinned: Bool, isProven: Bool = true, isDecided: Bool = true,
        trustedUntil: Date? = nil,
        firstSeen: Date, lastSeen: Date
    ) {
        self.init(
            id: id, name: name, alias: alias, trust: trust, isTLSPinned: isTLSPinned, isProven: isProven, isDecided: isDecided,
            trustedUntil: trustedUntil.map { WallTime($0) },
            firstSeen: WallTime(firstSeen), lastSeen: WallTime(lastSeen))
    }
}

extension StoredSession {
    /// Creates a session with a `Date`.
    init(id: SessionID, members: [PeerID], createdAt: Date) {
        self.init(id: id, members: members, createdAt: WallTime(createdAt))
    }
}

extension Resource {
    /// Creates a resource with `Date`s.
    init(
        id: ResourceID, direction: Direction, peerID: PeerID, peerName: String, name: String, kind: Kind, size: UInt64,
        transferred: UInt64 = 0, state: State, digest: String? = nil, path: String? = nil, error: EarshotError.Code? = nil,
        errorMessage: String? = nil, createdAt: Date, completedAt: Date? = nil, inSpool: Bool = false
    ) {
        self.init(
            id: id, direction: direction, peerID: peerID, peerName: peerName, name: name, kind: kind, size: size,
            transferred: transferred, state: state, digest: digest, path: path, error: error, errorMessage: errorMessage,
            created: WallTime(createdAt), completed: completedAt.map { WallTime($0) }, inSpool: inSpool)
    }
}

extension StoredTransfer {
    /// Creates a transfer with a `Date`.
    init(
        id: ResourceID, source: Source, stamp: String = "", isQueued: Bool = false, isTaken: Bool = false, expiresAt: Date
    ) {
        self.init(id: id, source: source, stamp: stamp, isQueued: isQueued, isTaken: isTaken, expiry: WallTime(expiresAt))
    }
}

extension Node {
    /// Returns the core's record of a peer.
    func record(_ peer: PeerID) -> PeerRecord? { self.core.records[peer] }

    /// Makes these the only configured peers.
    func configure(_ peers: [ConfiguredPeer]) {
        var settings = self.core.settings
        settings.configuredPeers = peers
        self.handle(.settings(settings))
    }
}
