package import EarshotWire

/// The settings that decisions go by.
package struct CoreSettings: Sendable, Hashable {
    package var policy: PolicyEngine.Settings
    /// How long an invitation is tried, unless its caller says.
    package var invitationTimeout: Duration
    /// Peers that are reached without discovery, in the settings' order.
    package var configuredPeers: [ConfiguredPeer]

    /// How long a queued message waits at most.
    package var outboxAge: Duration
    /// Whether senders hear that their messages were read here.
    package var receipts: Bool
    /// The longest resource that is taken from a peer, in bytes; any where `nil`.
    package var maximumResourceSize: UInt64?
    /// What is done about invitations to groups; `accept` is for those of trusted peers, and the others' wait for a person then.
    package var groupInvitations: InvitationPolicy
    /// What is done about files that members of a group send to it.
    package var groupFiles: GroupFilePolicy
    /// What this machine is called: it joins groups by that name.
    package var name: DisplayName?
    /// Strangers at one IPv4 address or IPv6 /64 whose invitations wait here at once; what it is at the start counts.
    package var invitationsPerAddress: Int
    /// How many invitations a stranger may send at once; after those, one a second. What it is at the start counts.
    package var invitationBurst: Int
    /// Whether a session is one of two running programs, and ends with either. A peer that asks while a session stands has started anew, and nothing
    /// but ``Command/invite`` invites a peer.
    package var sessionsEndWithPrograms: Bool
    /// Whether received files are put into a directory, and do not stay in the spool.
    package var putsInPlace: Bool

    package init(
        policy: PolicyEngine.Settings, invitationTimeout: Duration, configuredPeers: [ConfiguredPeer],
        outboxAge: Duration = .seconds(604_800), receipts: Bool = true, maximumResourceSize: UInt64? = nil, putsInPlace: Bool = false,
        groupInvitations: InvitationPolicy = .ask, groupFiles: GroupFilePolicy = .accept, name: DisplayName? = nil,
        invitationsPerAddress: Int = EarshotLimits.pendingInvitationsPerAddress, invitationBurst: Int = EarshotLimits.askingBurst,
        sessionsEndWithPrograms: Bool = false
    ) {
        self.invitationBurst = invitationBurst
        self.sessionsEndWithPrograms = sessionsEndWithPrograms
        self.invitationsPerAddress = invitationsPerAddress
        self.groupInvitations = groupInvitations
        self.groupFiles = groupFiles
        self.name = name
        self.maximumResourceSize = maximumResourceSize
        self.putsInPlace = putsInPlace
        self.outboxAge = outboxAge
        self.receipts = receipts
        self.policy = policy
        self.invitationTimeout = invitationTimeout
        self.configuredPeers = configuredPeers
    }

    var encryption: EncryptionPreference { self.policy.encryption }
    var pairedOnly: Bool { self.policy.pairedOnly }
}
