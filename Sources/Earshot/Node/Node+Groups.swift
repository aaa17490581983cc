import EarshotWire
import Logging

/// What programs ask of a node about groups: the core decides, and answers once that is on disk.
extension Node {
    /// Every group that this machine is in, or is joining, in the order in which they were made or joined.
    public func groups() -> [Group] { self.core.groupList }

    /// The group that a person means: by its id, 8 or more of its first characters, or its name.
    /// - Throws: `unknown-group`, `ambiguous-group`.
    public func group(_ name: String) throws(EarshotError) -> Group { try self.core.group(name) }

    /// Makes a group of which this machine is the creator and the only member. Others are let in by any member, or where it is closed by this
    /// machine alone; they talk over TLS, unless it is unprotected.
    /// - Throws: `invalid-parameter` for a name that is none, `no-space` for more than `EarshotLimits.groups`, `storage`.
    public func createGroup(
        name: String, isClosed: Bool = false, isUnprotected: Bool = false
    ) async throws(EarshotError) -> Group {
        try await self.call(.group(.create(name: name, isClosed: isClosed, isUnprotected: isUnprotected))).group
    }

    /// - Throws: `unknown-group`, `ambiguous-group`, `forbidden` where this machine is not the creator, `invalid-parameter`, `storage`.
    public func renameGroup(_ group: String, to name: String) async throws(EarshotError) -> Group {
        try await self.call(.group(.rename(group, to: name))).group
    }

    /// Leaves a group; whom this machine has let in stays.
    /// - Throws: `unknown-group`, `ambiguous-group`, `storage`.
    public func leaveGroup(_ group: String) async throws(EarshotError) { try await self.call(.group(.leave(group))).done() }

    /// Ends a group for all its members, for good.
    /// - Throws: `unknown-group`, `ambiguous-group`, `forbidden` where this machine is not the creator, `storage`.
    public func dissolveGroup(_ group: String) async throws(EarshotError) { try await self.call(.group(.dissolve(group))).done() }

    /// Takes a member out of a group: only the creator lets it in again. Those that came in through it stay, unless `withInvited`.
    /// - Throws: `unknown-group`, `ambiguous-group`, `not-member`, `ambiguous-peer`, `forbidden` where this machine is not the creator,
    ///   `no-space` where the group has had 256 removals, `storage`.
    public func removeMember(_ peer: String, from group: String, withInvited: Bool = false) async throws(EarshotError) -> Group {
        try await self.call(.group(.remove(group, peer: peer, withInvited: withInvited))).group
    }

    /// Asks peers to join a group, each until the timeout (30 s by default, at most a day); of members the answer is an accepted invitation.
    /// - Throws: `unknown-group`, `ambiguous-group`, `unknown-peer`, `ambiguous-peer`; `forbidden` for a blocked peer, and where the group is
    ///   closed and another's; `conflict` where a peer is invited to another group; `no-space` for more members than a group can have;
    ///   `invalid-parameter` for a context over 8 KiB. Nobody is invited then.
    public func invite(
        _ peers: [String], toGroup group: String, context: [UInt8] = [], timeout: Duration? = nil
    ) async throws(EarshotError) -> [Invitation] {
        let answer = await self.call(.group(.invite(group, peers: peers, context: context, timeout: timeout)))
        if case .invitations(let invitations) = answer { return invitations }
        throw answer.error
    }

    // MARK: Signatures

    /// Off the node's loop: a signature of RSA takes milliseconds.
    func sign(_ inputs: [[UInt8]], as id: SignatureID) {
        let identity = self.transport.identity
        self.spawn { [input] in
            let signatures: Result<[[UInt8]], EarshotError>
            do {
                signatures = .success(try inputs.map { try identity.sign($0) })
            } catch {
                signatures = .failure(EarshotError(.unavailable, "cannot sign with the identity's key: \(error)", underlying: error))
            }
            input.yield(.core(.signed(id, signatures)))
        }
    }

    func check(_ checks: [[ProofCheck]], as id: SignatureID) {
        self.spawn { [input] in input.yield(.core(.checked(id, checks.map { $0.allSatisfy(ProofVerifier.isValid) }))) }
    }

    /// What an event about a group takes in the log, in bytes.
    static func eventCost(of group: Group) -> Int { 512 + group.members.count * 320 }
}

extension Answer {
    fileprivate var group: Group {
        get throws(EarshotError) {
            if case .group(let group) = self { return group }
            throw self.error
        }
    }

    fileprivate func done() throws(EarshotError) { if case .failure(let error) = self { throw error } }
}
