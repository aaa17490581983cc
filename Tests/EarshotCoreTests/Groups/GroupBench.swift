import EarshotWire
import NIOCore
import OrderedCollections
import Testing

@testable import EarshotCore
@testable import EarshotWire

/// Several cores that talk to each other over lossless connections, and sign with toy signatures.
struct GroupBench {
    /// One direction of a connection.
    private struct Wire {
        let from: Int
        let link: LinkID
        let to: Int
        let otherLink: LinkID
    }

    var peers: [CoreBench] = []
    let ids: [PeerID]
    private var wires: [Wire] = []

    static func key(_ index: Int) -> OwnKey { OwnKey(publicKey: [0x30, UInt8(index)], scheme: .ed25519) }

    init(_ count: Int, change: (inout CoreSettings) -> Void = { _ in }) throws {
        self.ids = (0..<count).map { PeerID(subjectPublicKeyInfo: Self.key($0).publicKey) }
        for index in 0..<count {
            let name = try DisplayName(Self.name(index))
            self.peers.append(
                CoreBench(self.ids[index], key: Self.key(index), seed: UInt64(index + 1)) {
                    $0.name = name
                    change(&$0)
                })
        }
    }

    /// Makes a group of that many peers, all connected.
    static func group(of count: Int) throws -> (bench: GroupBench, id: GroupID) {
        var bench = try GroupBench(count)
        try bench.connectAll()
        let id = try bench.create(0)
        for index in 1..<count { try bench.letIn(index, by: 0, to: id) }
        return (bench, id)
    }

    static func name(_ index: Int) -> String { "peer\(index)" }

    // MARK: Connections

    func isConnected(_ one: Int, _ other: Int) -> Bool { self.wires.contains { $0.from == one && $0.to == other } }

    mutating func connect(_ one: Int, _ other: Int) throws {
        guard !self.isConnected(one, other) else { return }
        let groups = [HelloExtension.groups]
        let link = try self.peers[one].prove(self.ids[other], name: Self.name(other), isInitiator: true, extensions: groups)
        let otherLink = try self.peers[other].prove(self.ids[one], name: Self.name(one), extensions: groups)
        self.wires.append(Wire(from: one, link: link, to: other, otherLink: otherLink))
        self.wires.append(Wire(from: other, link: otherLink, to: one, otherLink: link))
        self.settle()
    }

    mutating func connectAll() throws {
        for one in self.peers.indices { for other in self.peers.indices where one < other { try self.connect(one, other) } }
    }

    mutating func disconnect(_ one: Int, _ other: Int) {
        let gone = self.wires.filter { ($0.from, $0.to) == (one, other) || ($0.from, $0.to) == (other, one) }
        self.wires.removeAll { wire in gone.contains { $0.from == wire.from && $0.link == wire.link } }
        for wire in gone {
            _ = self.peers[wire.from].sent(on: wire.link)
            self.peers[wire.from].lose(wire.link)
        }
        self.settle()
    }

    /// Delivers frames until no peer sends any.
    mutating func settle() {
        var isMoving = true
        while isMoving {
            isMoving = false
            for wire in self.wires {
                for frame in self.peers[wire.from].sent(on: wire.link) {
                    isMoving = true
                    if case .message(let message) = frame {
                        self.peers[wire.to].handle(.link(wire.otherLink, .messages([message])))
                    } else {
                        self.peers[wire.to].frame(frame, on: wire.otherLink)
                    }
                }
            }
        }
    }

    /// Returns the connection of one peer to another.
    func link(_ one: Int, _ other: Int) throws -> LinkID { try #require(self.wires.first { $0.from == one && $0.to == other }).link }

    mutating func advance(_ duration: Duration) {
        for index in self.peers.indices { self.peers[index].advance(duration) }
        self.settle()
    }

    /// Restarts a peer, which has no connections then.
    mutating func restart(_ index: Int) {
        for other in self.peers.indices where self.isConnected(index, other) { self.disconnect(index, other) }
        let name = self.peers[index].core.settings.name
        self.peers[index] = self.peers[index].restarted { $0.name = name }
    }

    // MARK: Requests

    @discardableResult
    mutating func ask(_ index: Int, _ request: GroupRequest) -> Answer? {
        self.peers[index].call(.group(request))
        let call = self.peers[index].lastCall
        self.settle()
        return self.peers[index].answers[call]
    }

    mutating func create(_ index: Int, name: String = "team", isClosed: Bool = false) throws -> GroupID {
        try #require(self.ask(index, .create(name: name, isClosed: isClosed, isUnprotected: false))?.group).id
    }

    /// Lets a connected peer into a group.
    mutating func letIn(_ other: Int, by one: Int, to group: GroupID) throws {
        self.ask(one, .invite(group.description, peers: [self.ids[other].description], context: [], timeout: nil))
        let invitation = try #require(self.peers[other].pending.last, "\(other) is not invited by \(one)")
        self.respond(other, invitation, .accept)
        #expect(self.members(group, at: other).contains(other), "\(one) has let \(other) in")
    }

    /// Connects two peers, lets one into a group by the other, and disconnects them.
    mutating func letInAndPart(_ other: Int, by one: Int, to group: GroupID) throws {
        try self.connect(one, other)
        try self.letIn(other, by: one, to: group)
        self.disconnect(one, other)
    }

    /// Invites a peer, which accepts, and holds the inviter's signature. Returns the invitee's call.
    @discardableResult
    mutating func beginJoining(_ other: Int, by one: Int, to group: GroupID) throws -> CallID {
        self.ask(one, .invite(group.description, peers: [self.ids[other].description], context: [], timeout: nil))
        self.peers[one].areSignaturesHeld = true
        self.respond(other, try #require(self.peers[other].pending.last), .accept)
        #expect(self.group(group, at: other)?.state == .joining)
        return self.peers[other].lastCall
    }

    /// Releases the signatures and checks of a peer.
    mutating func releaseSignatures(of index: Int) {
        self.peers[index].releaseSignatures()
        self.settle()
    }

    @discardableResult
    mutating func respond(_ index: Int, _ invitation: InvitationID, _ decision: Invitation.Decision) -> Answer? {
        self.peers[index].call(.respond(invitation, decision, always: false))
        let call = self.peers[index].lastCall
        self.settle()
        return self.peers[index].answers[call]
    }

    mutating func send(_ body: String, by index: Int, to group: GroupID, id: MessageID? = nil, queue: Bool = false) -> CallID {
        var draft = MessageDraft(to: .group(group.description), contentType: "a/b", body: ByteBuffer(string: body), id: id, queue: queue)
        draft.fingerprint = Array(body.utf8)
        self.peers[index].call(.send([draft], room: [:]))
        let call = self.peers[index].lastCall
        self.settle()
        return call
    }

    // MARK: State

    func group(_ id: GroupID, at index: Int) -> Group? { try? self.peers[index].core.group(id.description) }

    /// Returns the members of a group by their indexes.
    func members(_ id: GroupID, at index: Int) -> Set<Int> {
        Set((self.group(id, at: index)?.members ?? []).compactMap { member in self.ids.firstIndex { $0 == member.peerID } })
    }

    /// Returns the members with which a peer is attached in a group.
    func attached(_ id: GroupID, at index: Int) -> Set<Int> {
        Set(
            (self.group(id, at: index)?.members ?? []).filter { $0.state == .connected }.compactMap { member in
                self.ids.firstIndex { $0 == member.peerID }
            })
    }

    func bodies(at index: Int) -> [String] { self.peers[index].inbox.map { String(buffer: $0.body) } }

    func status(of call: CallID, at index: Int, for other: Int) -> Message.Status? {
        guard case .success(let sent)? = self.peers[index].outcome(of: call) else { return nil }
        return sent.recipients.first { $0.peerID == self.ids[other] }?.status
    }

    func left(_ id: GroupID, at index: Int) -> [GroupEnd] {
        self.peers[index].events.compactMap { if case .groupLeft(id, let end) = $0 { end } else { nil } }
    }
}

extension Answer {
    var group: Group? { if case .group(let group) = self { group } else { nil } }
    var invitations: [Invitation]? { if case .invitations(let invitations) = self { invitations } else { nil } }
}
