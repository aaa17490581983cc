import Crypto
import EarshotWire
import Foundation
import NIOCore
import Testing

extension Vectors {
    /// Groups' records and their derived values: ids, signed bytes, hashes, digests.
    struct Groups: Codable, Sendable {
        struct Record: Codable, Sendable {
            struct Signature: Codable, Sendable {
                /// 1 peer, 2 voucher, 3 creator.
                let role: UInt8
                let scheme: UInt16
                /// The signer's SubjectPublicKeyInfo, DER.
                let publicKey: String
                /// The signed bytes.
                let input: String
                let signature: String
            }
            let name: String
            let kind: UInt8
            /// The group's id.
            let group: String
            /// The record: kind, fields and signatures.
            let hex: String
            let hash: String
            let signatures: [Signature]
        }

        /// A signature and bytes for which it is not valid.
        struct Invalid: Codable, Sendable {
            let name: String
            let scheme: UInt16
            let publicKey: String
            let input: String
            let signature: String
        }

        struct Digest: Codable, Sendable {
            let hashes: [String]
            let digest: String
        }

        let records: [Record]
        let invalid: [Invalid]
        let digests: [Digest]
    }
}

/// The vectors of groups: this code makes the published vectors from the fixtures, and reads the same values from the published bytes.
@Suite struct GroupVectorTests {
    private let fixtures: GroupFixtures

    init() throws { self.fixtures = try GroupFixtures() }

    // MARK: Writing

    private func record(_ name: String, _ record: GroupRecord, of group: GroupID) throws -> Vectors.Groups.Record {
        var buffer = ByteBuffer()
        try record.encode(into: &buffer)
        return Vectors.Groups.Record(
            name: name, kind: record.kind.rawValue, group: group.bytes.hexadecimal, hex: buffer.readableBytesView.hexadecimal,
            hash: record.hash(in: group).bytes.hexadecimal,
            signatures: try self.checks(of: record, in: group).map { role, check in
                Vectors.Groups.Record.Signature(
                    role: role.rawValue, scheme: check.scheme.rawValue, publicKey: check.publicKey.hexadecimal,
                    input: check.input.hexadecimal, signature: check.signature.hexadecimal)
            })
    }

    /// Returns the checks of a record's signatures, with the keys of alice, bob and carol.
    private func checks(of record: GroupRecord, in group: GroupID) throws -> [(role: GroupRecord.Role, check: ProofCheck)] {
        func check(_ role: GroupRecord.Role, by peer: PeerID, _ input: [UInt8], _ signature: [UInt8]) throws
            -> (role: GroupRecord.Role, check: ProofCheck)
        {
            let signer = try #require([self.fixtures.alice, self.fixtures.bob, self.fixtures.carol].first { $0.id == peer })
            return (role, ProofCheck(scheme: .ed25519, publicKey: signer.hello.publicKey, input: input, signature: signature))
        }
        let creator = self.fixtures.alice.id
        switch record {
        case .charter: return []
        case .terms(let terms): return [try check(.creator, by: creator, try terms.signedBytes(in: group), terms.signature)]
        case .seat(let seat):
            let role = seat.warrant.role
            return [
                try check(.peer, by: seat.peer, try seat.signedBytes(as: .peer, in: group), seat.signature),
                try check(
                    role, by: role == .creator ? creator : seat.voucher, try seat.signedBytes(as: role, in: group), seat.warrant.signature),
            ]
        case .leave(let leave): return [try check(.peer, by: leave.peer, try leave.signedBytes(in: group), leave.signature)]
        case .removal(let removal): return [try check(.creator, by: creator, try removal.signedBytes(in: group), removal.signature)]
        }
    }

    private func made() throws -> Vectors.Groups {
        let records = try self.fixtures.records()
        let hashes = records.map { $0.record.hash(in: $0.group) }
        return Vectors.Groups(
            records: try records.map { try self.record($0.name, $0.record, of: $0.group) }, invalid: try self.invalid(),
            digests: [hashes, Array(hashes.reversed().dropLast(2)), [hashes[0]], []].map { hashes in
                Vectors.Groups.Digest(
                    hashes: hashes.map(\.bytes.hexadecimal), digest: GroupRecordHash.digest(of: hashes).bytes.hexadecimal)
            })
    }

    /// Returns signatures that are not valid for the bytes beside them: a signature of one kind of record does not hold for another.
    private func invalid() throws -> [Vectors.Groups.Invalid] {
        let (alice, bob, id) = (self.fixtures.alice, self.fixtures.bob, self.fixtures.id)
        let seat = try self.fixtures.seat(of: bob, by: alice, role: .creator)
        let other = self.fixtures.closed.id
        let (removal, terms, leave) = (try self.fixtures.removal(), try self.fixtures.terms(), try self.fixtures.leave())
        let again = GroupRemoval(peer: removal.peer, number: 2)
        let proof = Transcript(initiatorHello: [1], responderHello: [2], transport: .tls).proofInput(of: .initiator)
        func bad(_ name: String, _ peer: VectorPeer, _ input: [UInt8], _ signature: [UInt8]) -> Vectors.Groups.Invalid {
            Vectors.Groups.Invalid(
                name: name, scheme: SignatureScheme.ed25519.rawValue, publicKey: peer.hello.publicKey.hexadecimal,
                input: input.hexadecimal, signature: signature.hexadecimal)
        }
        return [
            bad("the creator's word as a voucher's", alice, try seat.signedBytes(as: .voucher, in: id), seat.warrant.signature),
            bad("the peer's word as its voucher's", bob, try seat.signedBytes(as: .voucher, in: id), seat.signature),
            bad("the peer's signature by the voucher", alice, try seat.signedBytes(as: .peer, in: id), seat.signature),
            bad("a seat of another group", bob, try seat.signedBytes(as: .peer, in: other), seat.signature),
            bad("terms of another group", alice, try terms.signedBytes(in: other), terms.signature),
            bad("a leave of another group", bob, try leave.signedBytes(in: other), leave.signature),
            bad("a removal up to another number", alice, try again.signedBytes(in: id), removal.signature),
            bad("a removal by the one who is removed", bob, try removal.signedBytes(in: id), removal.signature),
            bad("a removal as a proof", alice, proof, removal.signature),
            bad("no signature", alice, try removal.signedBytes(in: id), []),
        ]
    }

    @Test func theGroupsArePublished() throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let data = try encoder.encode(try self.made()) + Data("\n".utf8)
        if let folder = ProcessInfo.processInfo.environment["EARSHOT_WRITE_VECTORS"] {
            try data.write(to: URL(fileURLWithPath: folder).appendingPathComponent("groups.json"))
        } else {
            let published = try Data(contentsOf: #require(Vectors.folder).appendingPathComponent("groups.json"))
            #expect(data == published, "groups.json is not what its cases come to")
        }
    }

    // MARK: Reading

    @Test func recordsAreReadFromTheirBytes() throws {
        let vectors = try Vectors.load("groups", as: Vectors.Groups.self)
        #expect(Set(vectors.records.map(\.kind)) == Set(GroupRecord.Kind.allCases.map(\.rawValue)))
        #expect(
            Set(vectors.records.flatMap { $0.signatures.map(\.role) }) == Set(GroupRecord.Role.allCases.map(\.rawValue)))
        for vector in vectors.records {
            let group = try #require(GroupID(vector.group))
            let raw = try #require(bytes(hexadecimal: vector.hex))
            let record = try GroupRecord(decoding: ByteBuffer(bytes: raw))
            let read = try self.record(vector.name, record, of: group)
            #expect(read.hex == vector.hex && read.kind == vector.kind && read.hash == vector.hash, "\(vector.name)")
            #expect(read.signatures.map(\.input) == vector.signatures.map(\.input), "\(vector.name)")
            if case .charter(let charter) = record {
                #expect(charter.id == group && vector.hash == vector.group, "\(vector.name)")
                // The test calculates the id itself from the label and the fields, each after its length.
                let label = Array("earshot/1 group id".utf8)
                let parts = [0, 0, 0, UInt8(label.count)] + label + [0, 0, 0, UInt8(raw.count - 1)] + raw.dropFirst()
                #expect(Array(SHA256.hash(data: parts).prefix(16)) == charter.id.bytes, "\(vector.name)")
            }
            for signature in vector.signatures {
                let check = ProofCheck(
                    scheme: SignatureScheme(rawValue: signature.scheme), publicKey: try #require(bytes(hexadecimal: signature.publicKey)),
                    input: try #require(bytes(hexadecimal: signature.input)),
                    signature: try #require(bytes(hexadecimal: signature.signature)))
                #expect(ProofVerifier.isValid(check), "\(vector.name)")
                #expect(check.input.starts(with: Array("earshot/1 group".utf8) + [vector.kind, signature.role] + group.bytes))
            }
        }
    }

    @Test func noSignatureIsGoodForAnotherThing() throws {
        let vectors = try Vectors.load("groups", as: Vectors.Groups.self)
        #expect(vectors.invalid.count > 8)
        for vector in vectors.invalid {
            let check = ProofCheck(
                scheme: SignatureScheme(rawValue: vector.scheme), publicKey: try #require(bytes(hexadecimal: vector.publicKey)),
                input: try #require(bytes(hexadecimal: vector.input)), signature: try #require(bytes(hexadecimal: vector.signature)))
            #expect(!ProofVerifier.isValid(check), "\(vector.name)")
        }
    }

    @Test func digestsDoNotDependOnTheOrder() throws {
        let vectors = try Vectors.load("groups", as: Vectors.Groups.self)
        #expect(Set(vectors.digests.map(\.hashes.count)).isSuperset(of: [0, 1]))
        for vector in vectors.digests {
            let hashes = try vector.hashes.map { try #require(GroupRecordHash($0)) }
            #expect(GroupRecordHash.digest(of: hashes).bytes.hexadecimal == vector.digest)
            #expect(GroupRecordHash.digest(of: hashes.reversed()).bytes.hexadecimal == vector.digest)
            // Hexadecimal digits of one length are ordered as their bytes are.
            let sorted = try vector.hashes.sorted().flatMap { try #require(bytes(hexadecimal: $0)) }
            #expect(Array(SHA256.hash(data: sorted).prefix(16)).hexadecimal == vector.digest)
        }
    }
}
