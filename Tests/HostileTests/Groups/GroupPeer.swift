import Crypto
import EarshotWire
import Foundation
import NIOCore
import Testing

/// A group as the daemon's user sees it.
struct GroupView: Decodable, Hashable {
    struct Member: Decodable, Hashable {
        let peer_id: String
        let name: String
        let state: String
        let invited_by: String
        let joined_at: String
    }
    let id: String
    let name: String
    let members: [Member]

    /// The ids of its members, without those that have no room.
    var peers: Set<String> { Set(self.members.filter { $0.state != "full" }.map(\.peer_id)) }

    /// The group as a user perceives it: its name, and its members with their names.
    var names: [String] { [self.name] + self.members.map { "\($0.peer_id) \($0.name)" }.sorted() }

    static func all(of daemon: VictimDaemon) throws -> [GroupView] {
        struct List: Decodable { let groups: [GroupView] }
        return try daemon.decoded(List.self, at: "/v1/groups").groups
    }
}

/// A peer over TLS that supports groups. It lets a daemon admit it to a group, or the daemon join its own. Each test decides which frames
/// it sends then.
final class GroupPeer {
    let tunnel: TLSTunnel
    let key: GroupKey
    let daemon: VictimDaemon
    private(set) var peer: WirePeer
    private let name: String
    /// The charter of the group that the daemon has admitted this peer to.
    private(set) var charter: GroupCharter?
    /// The number of its seat in that group.
    private(set) var seatNumber: UInt32 = 1

    var id: PeerID { self.key.id }

    init(_ daemon: VictimDaemon, name: String = "mallory") throws {
        self.daemon = daemon
        self.tunnel = try TLSTunnel(to: daemon.port)
        self.key = GroupKey(self.tunnel.key)
        self.name = name
        self.peer = try Self.connect(self.tunnel, name)
    }

    private static func connect(_ tunnel: TLSTunnel, _ name: String) throws -> WirePeer {
        try WirePeer(port: tunnel.port, key: tunnel.key, name: name, transport: .tls, extensions: [.groups]).prove()
    }

    /// Closes its connection, and opens another.
    func reconnect() throws { self.peer = try Self.connect(self.tunnel, self.name) }

    func send(_ frames: GroupFrame...) throws {
        for frame in frames { try self.peer.send(.group(frame)) }
    }

    func send(_ record: GroupRecord, of group: GroupID) throws { try self.send(.record(record, of: group)) }

    func next<Value>(_ match: (GroupFrame) -> Value?) throws -> Value {
        try self.peer.next { if case .group(let frame) = $0 { match(frame) } else { nil } }
    }

    // MARK: Joining

    /// Lets the daemon's user create a group and admit this peer. Returns the group's id.
    func join(_ name: String = "team", isClosed: Bool = false) throws -> GroupID {
        let answer = try self.daemon.call("POST", "/v1/groups", json: #"{"name":"\#(name)","closed":\#(isClosed)}"#)
        try #require(answer.status == 201 || answer.status == 200, "\(answer)")
        return try self.letIn(to: name)
    }

    /// Lets the daemon's user invite this peer to an existing group.
    @discardableResult
    func letIn(to group: String) throws -> GroupID {
        // The daemon has accepted its proof, so the user can name this peer.
        try self.peer.roundTrip()
        let answer = try self.daemon.call("POST", "/v1/groups/\(group)/invitations", json: #"{"peers":["\#(self.id)"]}"#)
        try #require((200..<300).contains(answer.status), "\(answer)")
        let invite = try self.next { if case .invite(let invite) = $0 { invite } else { nil } }
        self.charter = invite.charter
        self.seatNumber = invite.seatNumber
        let id = invite.charter.id
        let creator = invite.charter.creator
        var seat = GroupSeat(
            publicKey: self.key.publicKey, scheme: ForgedRecords.scheme, name: try DisplayName(self.name), number: invite.seatNumber,
            joinedAtMilliseconds: 1_700_000_000_000, voucher: creator, voucherNumber: invite.voucherNumber,
            warrant: GroupSeat.Warrant(.creator))
        seat.signature = try self.key.sign(try seat.signedBytes(as: .peer, in: id))
        try self.send(.inviteAnswer(GroupInviteAnswer(id: invite.id, decision: .accepted(seat))))
        // From now on the daemon treats this peer as a member.
        try self.next { if case .names(let names) = $0, names.contains(where: { $0.group == id }) { () } else { nil } }
        try self.send(.index(id, []))
        try self.next { frame -> Void? in
            if case .record(.seat(let seat), id) = frame, seat.peer == self.id, !seat.warrant.signature.isEmpty { () } else { nil }
        }
        try #require(GroupView.all(of: self.daemon).contains { $0.peers.contains(self.id.description) })
        return id
    }

    // MARK: Admitting

    /// Creates a group, which the daemon joins by its user's command.
    func create(_ name: String = "trap") throws -> ForgedRecords {
        let charter = try ForgedRecords.charter(by: self.key)
        self.charter = charter
        try self.offer(charter, name)
        return ForgedRecords(group: charter.id)
    }

    /// Lets the daemon join a group of this peer, and sends it all needed records.
    func offer(_ charter: GroupCharter, _ name: String = "trap") throws {
        let records = ForgedRecords(group: charter.id)
        let invitation = try self.invite(charter, name)
        // The user's command ends once the daemon is a member.
        let command = try PlainSocket(path: self.daemon.socket)
        command.send(VictimDaemon.request("POST", "/v1/invitations/\(invitation)/response", json: #"{"decision":"accept"}"#))
        var seat = try self.next { frame -> GroupSeat? in
            guard case .inviteAnswer(let answer) = frame, answer.id == invitation, case .accepted(let seat) = answer.decision
            else { return nil }
            return seat
        }
        seat.warrant = GroupSeat.Warrant(.creator, signature: try self.key.sign(try seat.signedBytes(as: .creator, in: charter.id)))
        try self.send(.seat(try records.seat(of: self.key, as: .creator, by: self.key)), of: charter.id)
        try self.send(.seat(seat), of: charter.id)
        try #require(command.receiveAll() != nil)
        try self.settle(charter.id)
    }

    /// Invites the daemon to a group of this peer. Afterwards the invitation is pending there, and the daemon has checked its signature.
    private func invite(_ charter: GroupCharter, _ name: String = "trap") throws -> InvitationID {
        try self.peer.roundTrip()
        let id = InvitationID.random()
        let terms = try ForgedRecords(group: charter.id).terms(1, name, by: self.key)
        try self.send(
            .invite(
                GroupInvite(
                    id: id, timeoutMilliseconds: 60_000, charter: charter, terms: terms, members: 1, voucherNumber: 1, seatNumber: 1,
                    context: [])))
        let events = try PlainSocket(path: self.daemon.socket)
        events.send(VictimDaemon.request("GET", "/v1/events?since=0"))
        var heard: [UInt8] = []
        while !String(decoding: heard, as: UTF8.self).contains(id.description) {
            let piece = try #require(events.receive(), "the daemon tells of no invitation")
            try #require(!piece.isEmpty, "the daemon's events have ended")
            heard += piece
        }
        return id
    }

    // MARK: The daemon's records

    /// Names the group with a different digest, so that the daemon answers with its index. By then it has processed all earlier records.
    /// Only members are answered.
    @discardableResult
    func settle(_ group: GroupID) throws -> Set<GroupRecordHash> {
        try self.send(.names([GroupName(group: group, digest: .random())]))
        return try self.next { if case .index(group, let hashes) = $0 { Set(hashes) } else { nil } }
    }
}
