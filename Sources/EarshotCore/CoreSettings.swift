package import EarshotWire

/// The settings that the core's decisions depend on.
package struct CoreSettings: Sendable, Hashable {
    package var policy = PolicyEngine.Settings()
    /// The time for which an invitation waits for an answer, unless its caller gives another.
    package var invitationTimeout: Duration = .seconds(30)
    /// Peers to connect to without discovery, in the settings' order.
    package var configuredPeers: [ConfiguredPeer] = []
    /// The longest time for which a queued message waits.
    package var outboxAge: Duration = .seconds(604_800)
    /// Whether senders are told that their messages were read.
    package var receipts = true
    /// The largest resource that is accepted from a peer, in bytes; `nil` for no limit.
    package var maximumResourceSize: UInt64?
    /// The bytes per second that all outgoing transfers, and all incoming ones, may move together; `nil` for no limit.
    package var sendLimit: UInt64?
    package var receiveLimit: UInt64?
    /// The policy for invitations to groups. `accept` applies to those of trusted peers; the others still wait for a user.
    package var groupInvitations = InvitationPolicy.ask
    /// The policy for files that members of a group send to it.
    package var groupFiles = GroupFilePolicy.accept
    /// The name under which this machine joins groups.
    package var name: DisplayName?
    /// Invitations from strangers at one IPv4 address or IPv6 /64 that wait here at once. Read at the start only.
    package var invitationsPerAddress = EarshotLimits.pendingInvitationsPerAddress
    /// Invitations that a stranger may send at once; after those, one a second. Read at the start only.
    package var invitationBurst = EarshotLimits.askingBurst
    /// Whether a session belongs to two running programs, and ends with either. If a peer asks for a session while one exists, that peer
    /// has restarted. Only `Command.invite` invites a peer.
    package var sessionsEndWithPrograms = false
    /// Whether received files are moved to a directory instead of staying in the spool.
    package var putsInPlace = false
    /// The settings for LocalSend devices.
    package var devices = DeviceSettings()

    package init() {}

    var encryption: EncryptionPreference { self.policy.encryption }
    var pairedOnly: Bool { self.policy.pairedOnly }
}
