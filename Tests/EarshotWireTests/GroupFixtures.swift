import Crypto
import EarshotWire
import Testing

/// A group of three with real signatures: Alice made it, let Bob in, and Bob let Carol in. All keys are of Ed25519 (RFC 8032), whose signatures
/// are the same each time.
struct GroupFixtures {
    let alice: VectorPeer
    let bob: VectorPeer
    let carol: VectorPeer
    let charter: GroupCharter
    let closed: GroupCharter

    var id: GroupID { self.charter.id }

    init() throws {
        self.alice = try .alice()
        self.bob = try .bob()
        self.carol = try VectorPeer("carol", first: 65, nonce: 0xC3)
        let key = self.alice.hello.publicKey
        self.charter = try GroupCharter(
            nonce: Array(0..<16), creatorKey: key, creatorScheme: .ed25519, createdAtMilliseconds: 1_700_000_000_000)
        self.closed = try GroupCharter(
            nonce: Array(16..<32), creatorKey: key, creatorScheme: .ed25519, isClosed: true, isUnprotected: true,
            createdAtMilliseconds: -1)
    }

    func signature(of input: [UInt8], by peer: VectorPeer) throws -> [UInt8] { Array(try peer.key.signature(for: input)) }

    func terms(_ number: UInt32 = 1, _ name: String = "team", isDissolved: Bool = false) throws -> GroupTerms {
        var terms = GroupTerms(number: number, name: try DisplayName(name), isDissolved: isDissolved)
        terms.signature = try self.signature(of: try terms.signedBytes(in: self.id), by: self.alice)
        return terms
    }

    func seat(
        of peer: VectorPeer, _ number: UInt32 = 1, by voucher: VectorPeer, role: GroupRecord.Role, signedBy signer: VectorPeer? = nil
    ) throws -> GroupSeat {
        var seat = GroupSeat(
            publicKey: peer.hello.publicKey, scheme: .ed25519, name: peer.hello.displayName, number: number,
            joinedAtMilliseconds: 1_700_000_060_000, voucher: voucher.id, voucherNumber: 1, warrant: GroupSeat.Warrant(role))
        seat.signature = try self.signature(of: try seat.signedBytes(as: .peer, in: self.id), by: peer)
        seat.warrant.signature = try self.signature(of: try seat.signedBytes(as: role, in: self.id), by: signer ?? voucher)
        return seat
    }

    /// Returns the seat as an invitee sends it, without the inviter's signature.
    func ownSeat() throws -> GroupSeat {
        var seat = try self.seat(of: self.bob, by: self.alice, role: .voucher)
        seat.warrant.signature = []
        return seat
    }

    func leave() throws -> GroupLeave {
        var leave = GroupLeave(publicKey: self.bob.hello.publicKey, scheme: .ed25519, number: 1)
        leave.signature = try self.signature(of: try leave.signedBytes(in: self.id), by: self.bob)
        return leave
    }

    func removal() throws -> GroupRemoval {
        var removal = GroupRemoval(peer: self.bob.id, number: 1)
        removal.signature = try self.signature(of: try removal.signedBytes(in: self.id), by: self.alice)
        return removal
    }

    /// Returns one record of each kind and of each role.
    func records() throws -> [(name: String, note: String, record: GroupRecord, group: GroupID)] {
        [
            ("charter", "nonce 00..0f, by alice, made at 1700000000000", .charter(self.charter), self.id),
            ("charter of a closed group", "nonce 10..1f, by alice, flags 3, made at -1", .charter(self.closed), self.closed.id),
            ("terms", "number 1, team", .terms(try self.terms()), self.id),
            (
                "terms of a dissolved group", "number 2, Käsekuchen, dissolved", .terms(try self.terms(2, "Käsekuchen", isDissolved: true)),
                self.id
            ),
            (
                "seat of the creator", "alice's, number 1, by itself in role 3",
                .seat(try self.seat(of: self.alice, by: self.alice, role: .creator)), self.id
            ),
            (
                "seat by the creator", "bob's, number 1, by alice in role 3",
                .seat(try self.seat(of: self.bob, by: self.alice, role: .creator)), self.id
            ),
            (
                "seat by a member", "carol's, number 1, by bob's seat 1 in role 2",
                .seat(try self.seat(of: self.carol, by: self.bob, role: .voucher)), self.id
            ),
            (
                "seat by a member, signed by the creator", "the same, by alice in role 3",
                .seat(try self.seat(of: self.carol, by: self.bob, role: .creator, signedBy: self.alice)), self.id
            ),
            ("leave", "of bob's seats up to 1", .leave(try self.leave()), self.id),
            ("removal", "of bob's seats up to 1", .removal(try self.removal()), self.id),
        ]
    }

    /// Every frame of groups.
    func frames() throws -> [Fixtures.NamedFrame] {
        func named(_ name: String, _ note: String, _ frame: GroupFrame) -> Fixtures.NamedFrame {
            Fixtures.NamedFrame(name: name, note: note, frame: .group(frame))
        }
        let records = try self.records()
        let hashes = records.filter { $0.group == self.id }.map { $0.record.hash(in: self.id) }
        func answer(_ decision: GroupInviteAnswer.Decision) -> GroupFrame {
            .inviteAnswer(GroupInviteAnswer(id: Fixtures.invitation, decision: decision))
        }
        let name = GroupName(group: self.id, digest: .digest(of: hashes))
        return [
            named("group invite", "30 s, 2 members, inviter's seat 1, seat 3 to take, context 'tea?'", .invite(try self.invite())),
            named(
                "group answer accepted", "bob's seat 1 by alice's seat 1, with his own signature alone",
                answer(.accepted(try self.ownSeat()))),
            named("group answer declined", "no seat", answer(.declined)),
            named("group answer busy", "no seat", answer(.busy)),
            named("group withdraw", "withdrawn", .inviteWithdraw(InviteWithdraw(id: Fixtures.invitation, reason: .withdrawn))),
            named("group timed out", "timed out", .inviteWithdraw(InviteWithdraw(id: Fixtures.invitation, reason: .timedOut))),
        ]
            + records.map { named("group record, \($0.name)", $0.note, .record($0.record, of: $0.group)) }
            + [
                named("group names", "one group", .names([name])),
                named(
                    "group names of two", "the same, and a closed one of which nothing but its charter is held",
                    .names([name, GroupName(group: self.closed.id, digest: .digest(of: []))])),
                named("group index", "of all records but the charter", .index(self.id, Array(hashes.dropFirst()))),
                named("group index of nothing", "nothing is held", .index(self.id, [])),
            ]
    }

    func invite(_ id: InvitationID = Fixtures.invitation) throws -> GroupInvite {
        GroupInvite(
            id: id, timeoutMilliseconds: 30_000, charter: self.charter, terms: try self.terms(), members: 2, voucherNumber: 1,
            seatNumber: 3,
            context: Array("tea?".utf8))
    }
}
