import Crypto
import EarshotWire
import Foundation

/// A signing key with its peer id.
struct GroupKey {
    let key: P256.Signing.PrivateKey
    let id: PeerID

    init(_ key: P256.Signing.PrivateKey = P256.Signing.PrivateKey()) {
        self.key = key
        self.id = PeerID(subjectPublicKeyInfo: key.publicKey.derRepresentation)
    }

    var publicKey: [UInt8] { Array(self.key.publicKey.derRepresentation) }

    func sign(_ bytes: [UInt8]) throws -> [UInt8] { Array(try self.key.signature(for: Data(bytes)).derRepresentation) }
}

/// Creates records of a group, signed by the given keys; by the right key unless told otherwise.
struct ForgedRecords {
    /// The scheme of all P-256 keys.
    static let scheme = SignatureScheme.ecdsaSecp256r1SHA256

    let group: GroupID

    static func charter(by creator: GroupKey, isClosed: Bool = false) throws -> GroupCharter {
        try GroupCharter(
            nonce: (0..<WireLimits.groupNonce).map { _ in .random(in: .min ... .max) }, creatorKey: creator.publicKey,
            creatorScheme: Self.scheme, isClosed: isClosed, createdAtMilliseconds: 1_700_000_000_000)
    }

    func terms(_ number: UInt32, _ name: String, isDissolved: Bool = false, by creator: GroupKey) throws -> GroupTerms {
        var terms = GroupTerms(number: number, name: try DisplayName(name), isDissolved: isDissolved)
        terms.signature = try creator.sign(try terms.signedBytes(in: self.group))
        return terms
    }

    /// Returns a peer's seat. The peer signs it unless `signer` is given, and another key vouches for it.
    func seat(
        of peer: GroupKey, _ number: UInt32 = 1, name: String = "x", at time: Int64 = 1_700_000_000_000,
        as role: GroupRecord.Role = .voucher,
        by warrantor: GroupKey, voucher: PeerID? = nil, seat voucherNumber: UInt32 = 1, signer: GroupKey? = nil,
        scheme: SignatureScheme = Self.scheme
    ) throws -> GroupSeat {
        var seat = GroupSeat(
            publicKey: peer.publicKey, scheme: scheme, name: try DisplayName(name), number: number, joinedAtMilliseconds: time,
            voucher: voucher ?? warrantor.id, voucherNumber: voucherNumber, warrant: GroupSeat.Warrant(role))
        seat.signature = try (signer ?? peer).sign(try seat.signedBytes(as: .peer, in: self.group))
        seat.warrant.signature = try warrantor.sign(try seat.signedBytes(as: role, in: self.group))
        return seat
    }

    func leave(
        of peer: GroupKey, _ number: UInt32 = 1, by signer: GroupKey? = nil, scheme: SignatureScheme = Self.scheme
    ) throws -> GroupLeave {
        var leave = GroupLeave(publicKey: peer.publicKey, scheme: scheme, number: number)
        leave.signature = try (signer ?? peer).sign(try leave.signedBytes(in: self.group))
        return leave
    }

    func removal(of peer: PeerID, _ number: UInt32 = 1, by creator: GroupKey) throws -> GroupRemoval {
        var removal = GroupRemoval(peer: peer, number: number)
        removal.signature = try creator.sign(try removal.signedBytes(in: self.group))
        return removal
    }
}
