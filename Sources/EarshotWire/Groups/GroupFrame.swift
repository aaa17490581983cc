/// A frame about groups: an invitation to one, or its records. Sent only if both hellos carry ``HelloExtension/groups``.
package enum GroupFrame: Sendable, Hashable {
    case invite(GroupInvite)
    case inviteAnswer(GroupInviteAnswer)
    case inviteWithdraw(InviteWithdraw)
    case record(GroupRecord, of: GroupID)
    /// The groups that the sender believes the receiver to be in, with their digests.
    case names([GroupName])
    /// The records that the sender holds of a group, asking for the rest.
    case index(GroupID, [GroupRecordHash])

    package var type: FrameType {
        switch self {
        case .invite: .groupInvite
        case .inviteAnswer: .groupAnswer
        case .inviteWithdraw: .groupWithdraw
        case .record: .groupRecord
        case .names: .groupNames
        case .index: .groupIndex
        }
    }
}

/// An invitation to a group.
package struct GroupInvite: Sendable, Hashable {
    package var id: InvitationID
    /// The time that the inviter will wait from now, 1 to `WireLimits.invitationTimeoutMilliseconds`.
    package var timeoutMilliseconds: UInt32
    package var charter: GroupCharter
    package var terms: GroupTerms
    /// The number of members, 1 to `WireLimits.groupMembers`.
    package var members: UInt8
    /// The number of the inviter's own seat.
    package var voucherNumber: UInt32
    /// The number of the seat to take, unless the invitee knows of a higher one.
    package var seatNumber: UInt32
    /// Opaque to Earshot, at most `WireLimits.invitationContext` bytes.
    package var context: [UInt8]

    package init(
        id: InvitationID, timeoutMilliseconds: UInt32, charter: GroupCharter, terms: GroupTerms, members: UInt8, voucherNumber: UInt32,
        seatNumber: UInt32, context: [UInt8]
    ) {
        self.id = id
        self.timeoutMilliseconds = timeoutMilliseconds
        self.charter = charter
        self.terms = terms
        self.members = members
        self.voucherNumber = voucherNumber
        self.seatNumber = seatNumber
        self.context = context
    }

    func write(into writer: inout PayloadWriter) throws(WireError) {
        writer.identifier(self.id)
        try writer.integer("timeout", self.timeoutMilliseconds, in: 1...WireLimits.invitationTimeoutMilliseconds)
        try self.charter.write(into: &writer)
        try self.terms.write(into: &writer)
        try writer.integer("members", self.members, in: 1...WireLimits.groupMembers)
        try writer.integer("voucher_number", self.voucherNumber, in: 1...UInt32.max)
        try writer.integer("seat_number", self.seatNumber, in: 1...UInt32.max)
        try writer.bytes("context", self.context, in: 0...WireLimits.invitationContext)
    }

    init(from reader: inout PayloadReader) throws(WireError) {
        self.id = try reader.identifier("invitation")
        self.timeoutMilliseconds = try reader.integer("timeout", in: 1...WireLimits.invitationTimeoutMilliseconds)
        self.charter = try GroupCharter(from: &reader)
        self.terms = try GroupTerms(from: &reader)
        self.members = try reader.integer("members", in: 1...WireLimits.groupMembers)
        self.voucherNumber = try reader.integer("voucher_number", in: 1...UInt32.max)
        self.seatNumber = try reader.integer("seat_number", in: 1...UInt32.max)
        self.context = try reader.bytes("context", in: 0...WireLimits.invitationContext)
    }
}

/// The answer to an invitation to a group.
package struct GroupInviteAnswer: Sendable, Hashable {
    package enum Decision: Sendable, Hashable {
        /// The seat, signed by the peer that takes it. The inviter's signature follows later, so its warrant is empty.
        case accepted(GroupSeat)
        case declined
        /// The invitee keeps no more invitations pending.
        case busy
    }
    package var id: InvitationID
    package var decision: Decision

    package init(id: InvitationID, decision: Decision) {
        self.id = id
        self.decision = decision
    }

    func write(into writer: inout PayloadWriter) throws(WireError) {
        writer.identifier(self.id)
        switch self.decision {
        case .accepted(let seat):
            writer.integer(UInt8(1))
            try seat.writeOwnPart(into: &writer)
        case .declined: writer.integer(UInt8(2))
        case .busy: writer.integer(UInt8(3))
        }
    }

    init(from reader: inout PayloadReader) throws(WireError) {
        self.id = try reader.identifier("invitation")
        switch try reader.integer("decision", as: UInt8.self) {
        case 1: self.decision = .accepted(try GroupSeat(ownPartFrom: &reader))
        case 2: self.decision = .declined
        case 3: self.decision = .busy
        default: throw reader.malformed("decision")
        }
    }
}

/// A group with the digest of the records that one side holds.
package struct GroupName: Sendable, Hashable {
    package var group: GroupID
    /// The digest of the hashes of all its records: `GroupRecordHash.digest(of:)`.
    package var digest: GroupRecordHash

    package init(group: GroupID, digest: GroupRecordHash) {
        self.group = group
        self.digest = digest
    }
}

extension GroupFrame {
    func write(into writer: inout PayloadWriter) throws(WireError) {
        switch self {
        case .invite(let invite): try invite.write(into: &writer)
        case .inviteAnswer(let answer): try answer.write(into: &writer)
        case .inviteWithdraw(let withdraw):
            writer.identifier(withdraw.id)
            writer.integer(withdraw.reason.rawValue)
        case .record(let record, let group):
            writer.identifier(group)
            try record.write(into: &writer)
        case .names(let names):
            try writer.length("groups", names.count, as: UInt8.self, in: 0...WireLimits.groupsPerFrame)
            for name in names {
                writer.identifier(name.group)
                writer.identifier(name.digest)
            }
        case .index(let group, let hashes):
            writer.identifier(group)
            try writer.length("records", hashes.count, as: UInt16.self, in: 0...WireLimits.groupIndex)
            for hash in hashes { writer.identifier(hash) }
        }
    }

    static func invite(from reader: inout PayloadReader) throws(WireError) -> Frame { .group(.invite(try GroupInvite(from: &reader))) }

    static func answer(from reader: inout PayloadReader) throws(WireError) -> Frame {
        .group(.inviteAnswer(try GroupInviteAnswer(from: &reader)))
    }

    static func withdraw(from reader: inout PayloadReader) throws(WireError) -> Frame {
        .group(.inviteWithdraw(InviteWithdraw(id: try reader.identifier("invitation"), reason: try reader.choice("reason"))))
    }

    static func record(from reader: inout PayloadReader) throws(WireError) -> Frame {
        let group = try reader.identifier("group", as: GroupID.self)
        return .group(.record(try GroupRecord.read(from: &reader), of: group))
    }

    static func names(from reader: inout PayloadReader) throws(WireError) -> Frame {
        let count = try reader.length("groups", as: UInt8.self, in: 0...WireLimits.groupsPerFrame)
        var names: [GroupName] = []
        names.reserveCapacity(count)
        for _ in 0..<count {
            names.append(GroupName(group: try reader.identifier("group"), digest: try reader.identifier("digest")))
        }
        return .group(.names(names))
    }

    static func index(from reader: inout PayloadReader) throws(WireError) -> Frame {
        let group = try reader.identifier("group", as: GroupID.self)
        let count = try reader.length("records", as: UInt16.self, in: 0...WireLimits.groupIndex)
        var hashes: [GroupRecordHash] = []
        hashes.reserveCapacity(count)
        for _ in 0..<count { hashes.append(try reader.identifier("record")) }
        return .group(.index(group, hashes))
    }
}
