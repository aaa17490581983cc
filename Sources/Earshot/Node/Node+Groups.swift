public import EarshotWire
import Logging

/// Calls about groups. The core decides, and answers when its decision is on disk.
extension Node {
    /// Returns every group that this machine is in or is joining, in the order in which it created or joined them.
    public func groups() -> [Group] { self.core.groupList }

    /// Returns a group by its id or by a name. A name can be the id, 8 or more of the id's first characters, or the group's name. All calls
    /// about a group accept the same names.
    /// - Throws: `unknown-group`, `ambiguous-group`.
    public func group(_ group: any GroupReference) throws(EarshotError) -> Group { try self.core.group(group.description) }

    /// Creates a group with this machine as the creator and the only member. Any member can admit others; if the group is closed, only
    /// this machine can. The members talk over TLS, unless the group is unprotected.
    /// - Throws: `invalid-parameter` for an invalid name, `no-space` for more than `EarshotLimits.groups`, `storage`.
    public func createGroup(
        name: String, isClosed: Bool = false, isUnprotected: Bool = false
    ) async throws(EarshotError) -> Group {
        try await self.call(.group(.create(name: name, isClosed: isClosed, isUnprotected: isUnprotected))).group
    }

    /// Renames a group.
    /// - Throws: `unknown-group`, `ambiguous-group`, `forbidden` if this machine is not the creator, `invalid-parameter`, `storage`.
    @discardableResult
    public func renameGroup(_ group: any GroupReference, to name: String) async throws(EarshotError) -> Group {
        try await self.call(.group(.rename(group.description, to: name))).group
    }

    /// Leaves a group. Members that this machine has admitted stay.
    /// - Throws: `unknown-group`, `ambiguous-group`, `storage`.
    public func leaveGroup(_ group: any GroupReference) async throws(EarshotError) {
        try await self.call(.group(.leave(group.description))).done()
    }

    /// Dissolves a group permanently, for all its members.
    /// - Throws: `unknown-group`, `ambiguous-group`, `forbidden` if this machine is not the creator, `storage`.
    public func dissolveGroup(_ group: any GroupReference) async throws(EarshotError) {
        try await self.call(.group(.dissolve(group.description))).done()
    }

    /// Removes a member from a group. Only the creator can admit it again. Members that it has admitted stay, unless `withInvited`.
    /// - Throws: `unknown-group`, `ambiguous-group`, `not-member`, `ambiguous-peer`, `forbidden` if this machine is not the creator,
    ///   `no-space` if the group has had 256 removals, `storage`.
    @discardableResult
    public func removeMember(
        _ peer: any PeerReference, from group: any GroupReference, withInvited: Bool = false
    ) async throws(EarshotError) -> Group {
        try await self.call(.group(.remove(group.description, peer: peer.description, withInvited: withInvited))).group
    }

    /// Invites peers to a group, each until the timeout (30 s by default, at most a day). For a member, the answer is an accepted
    /// invitation. If the call throws, it has invited no peer.
    /// - Throws: `unknown-group`, `ambiguous-group`, `unknown-peer`, `ambiguous-peer`; `forbidden` for a blocked peer, and for a closed
    ///   group of another creator; `conflict` if a peer is invited to another group; `no-space` for more members than a group can have;
    ///   `invalid-parameter` for a context over 8 KiB.
    @discardableResult
    public func invite(
        _ peers: [any PeerReference], toGroup group: any GroupReference, context: [UInt8] = [], timeout: Duration? = nil
    ) async throws(EarshotError) -> [Invitation] {
        let names = peers.map(\.description)
        let answer = await self.call(.group(.invite(group.description, peers: names, context: context, timeout: timeout)))
        if case .invitations(let invitations) = answer { return invitations }
        throw answer.error
    }

    // MARK: Signatures

    /// Signs outside the node's loop, because an RSA signature takes milliseconds.
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

    /// Returns the cost of an event about a group in the log, in bytes.
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
