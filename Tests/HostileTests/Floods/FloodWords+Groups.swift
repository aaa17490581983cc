import EarshotWire

/// The group frames of a flood, with invalid signatures. The nonce in the charter of an invitation changes with each run, and so does its
/// group.
extension FloodWords {
    func groupFrames(_ type: FrameType, _ step: UInt32) throws -> [GroupFrame] {
        switch type {
        case .groupInvite: return [.invite(try self.groupInvite(step))]
        case .groupAnswer:
            let decisions: [GroupInviteAnswer.Decision] = [.accepted(try self.seat(step)), .declined, .busy]
            return [.inviteAnswer(GroupInviteAnswer(id: Self.id(step), decision: decisions[Int(step) % decisions.count]))]
        case .groupWithdraw:
            let reason: InviteWithdraw.Reason = step % 2 == 0 ? .withdrawn : .timedOut
            return [.invite(try self.groupInvite(step)), .inviteWithdraw(InviteWithdraw(id: Self.id(step), reason: reason))]
        case .groupRecord:
            let records: [GroupRecord] = [
                .charter(try self.charter(step)), .terms(try self.terms(step)), .seat(try self.seat(step)),
                .leave(GroupLeave(publicKey: self.key, scheme: Self.scheme, number: 1 + step % 4, signature: Self.signature)),
                .removal(GroupRemoval(peer: PeerID(subjectPublicKeyInfo: self.key), number: 1 + step % 4, signature: Self.signature)),
            ]
            return [.record(records[Int(step) % records.count], of: Self.id(step))]
        case .groupNames:
            let count = step % 2 == 0 ? WireLimits.groupsPerFrame : 1
            return [.names((0..<count).map { GroupName(group: Self.id(step, UInt64($0)), digest: Self.id(step, UInt64($0))) })]
        case .groupIndex:
            let count = step % 2 == 0 ? WireLimits.groupIndex : 0
            return [.index(Self.id(step), (0..<count).map { Self.id(step, UInt64($0)) })]
        default: return []
        }
    }

    private static let scheme = SignatureScheme.ecdsaSecp256r1SHA256
    private static let signature = [UInt8](repeating: 1, count: 70)

    private func groupInvite(_ step: UInt32) throws -> GroupInvite {
        GroupInvite(
            id: Self.id(step), timeoutMilliseconds: WireLimits.invitationTimeoutMilliseconds, charter: try self.charter(step),
            terms: try self.terms(step), members: 1 + UInt8(step % UInt32(WireLimits.groupMembers)), voucherNumber: 1, seatNumber: 1,
            context: [UInt8](repeating: 0x78, count: step % 16 == 0 ? WireLimits.invitationContext : 0))
    }

    private func charter(_ step: UInt32) throws -> GroupCharter {
        let nonce: GroupID = Self.id(step)
        return try GroupCharter(
            nonce: nonce.bytes, creatorKey: self.key, creatorScheme: Self.scheme, isClosed: step % 8 == 7,
            createdAtMilliseconds: 1_700_000_000_000)
    }

    private func terms(_ step: UInt32) throws -> GroupTerms {
        GroupTerms(
            number: 1 + step % 4, name: try DisplayName("flood \(step)"), isDissolved: step % 16 == 15, signature: Self.signature)
    }

    private func seat(_ step: UInt32) throws -> GroupSeat {
        GroupSeat(
            publicKey: self.key, scheme: Self.scheme, name: try DisplayName("flood \(step)"), number: 1 + step % 4,
            joinedAtMilliseconds: 1_700_000_000_000, voucher: PeerID(subjectPublicKeyInfo: self.key), voucherNumber: 1,
            signature: Self.signature, warrant: GroupSeat.Warrant(step % 2 == 0 ? .creator : .voucher, signature: Self.signature))
    }
}
