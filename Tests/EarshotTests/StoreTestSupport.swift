import EarshotWire
import Foundation
import NIOCore
import OrderedCollections

@testable import Earshot
@testable import EarshotCore

/// A state directory for one test, gone with it.
final class StateDirectory: Sendable {
    let path: String

    /// Among the temporary files, or in another directory.
    init(in parent: URL = FileManager.default.temporaryDirectory) throws {
        self.path = parent.appendingPathComponent("earshot-state-\(UUID())").path
        try FileManager.default.createDirectory(atPath: self.path, withIntermediateDirectories: true)
    }
    deinit { try? FileManager.default.removeItem(atPath: self.path) }

    /// The directory as a process that was killed now would leave it.
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

/// A peer id that is the same for the same number.
func peerID(_ number: UInt8) -> PeerID { PeerID(subjectPublicKeyInfo: [number]) }

/// A message of the given number, the same for the same arguments.
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
    /// The same with a time as programs know it.
    init(
        id: MessageID, senderID: PeerID, senderName: String, contentType: String, body: ByteBuffer, sentAt: Date, isResumed: Bool = true,
        followsRefusal: Bool = false
    ) {
        self.init(
            id: id, senderID: senderID, senderName: senderName, contentType: contentType, body: body, sent: WallTime(sentAt),
            isResumed: isResumed, followsRefusal: followsRefusal)
    }
}

extension StoredPeer {
    /// The same with times as programs know them.
    init(
        id: PeerID, name: String, trust: Trust, isTLSPinned: Bool, isProven: Bool = true, isDecided: Bool = true, trustedUntil: Date? = nil,
        firstSeen: Date, lastSeen: Date
    ) {
        self.init(
            id: id, name: name, trust: trust, isTLSPinned: isTLSPinned, isProven: isProven, isDecided: isDecided,
            trustedUntil: trustedUntil.map { WallTime($0) },
            firstSeen: WallTime(firstSeen), lastSeen: WallTime(lastSeen))
    }
}

extension StoredSession {
    /// The same with the time as programs know it.
    init(id: SessionID, members: [PeerID], createdAt: Date) {
        self.init(id: id, members: members, createdAt: WallTime(createdAt))
    }
}

extension Resource {
    /// The same with the times as programs know them.
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
    /// The same with the time as programs know it.
    init(
        id: ResourceID, source: Source, stamp: String = "", isQueued: Bool = false, isTaken: Bool = false, expiresAt: Date
    ) {
        self.init(id: id, source: source, stamp: stamp, isQueued: isQueued, isTaken: isTaken, expiry: WallTime(expiresAt))
    }
}

extension Node {
    /// What the core knows of a peer.
    func record(_ peer: PeerID) -> PeerRecord? { self.core.records[peer] }

    /// Has the settings name these peers, and no others.
    func configure(_ peers: [ConfiguredPeer]) {
        var settings = self.core.settings
        settings.configuredPeers = peers
        self.handle(.settings(settings))
    }
}
