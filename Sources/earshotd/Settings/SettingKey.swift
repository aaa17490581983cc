/// Every key of the settings file that takes effect, by section; the raw value is `section.key`.
///
/// `[discovery.info]` is not among them: its keys are the user's own.
enum SettingKey: String, Sendable, Hashable, CaseIterable {
    case peerName = "peer.name"
    case peerServiceType = "peer.service_type"
    case peerPort = "peer.port"
    case peerEncryption = "peer.encryption"
    case identityCertificate = "identity.certificate"
    case identityPrivateKey = "identity.private_key"
    case identityAuthorities = "identity.authorities"
    case discoveryBackend = "discovery.backend"
    case discoveryAdvertise = "discovery.advertise"
    case discoveryBrowse = "discovery.browse"
    case discoveryPeers = "discovery.peers"
    case invitationsFromUnknown = "invitations.from_unknown"
    case invitationsFromTrusted = "invitations.from_trusted"
    case invitationsPairedOnly = "invitations.paired_only"
    case invitationsTimeout = "invitations.timeout"
    case groupsInvitations = "groups.invitations"
    case groupsFiles = "groups.files"
    case messagesInboxLimit = "messages.inbox_limit"
    case messagesInboxSize = "messages.inbox_size"
    case messagesInboxAge = "messages.inbox_age"
    case resourcesAccept = "resources.accept"
    case resourcesDirectory = "resources.directory"
    case resourcesOnConflict = "resources.on_conflict"
    case messagesOutboxAge = "messages.outbox_age"
    case messagesReceipts = "messages.receipts"
    case resourcesMaximumSize = "resources.max_size"
    case resourcesQuota = "resources.quota"
    case resourcesReserve = "resources.reserve"
    case controlSocket = "control.socket"
    case controlGroup = "control.group"
    case logLevel = "log.level"

    /// The section whose pairs go into the advertisement.
    static let infoSection = "discovery.info"

    /// The sections there are, in the order of the example file.
    static let sections = [
        "peer", "identity", "discovery", infoSection, "invitations", "groups", "messages", "resources", "control", "log",
    ]

    /// The part before the last dot.
    var section: String { String(self.rawValue.prefix { $0 != "." }) }
    /// The part after it.
    var key: String { String(self.rawValue.drop { $0 != "." }.dropFirst()) }

    /// What stands before `SECTION_KEY` in the environment's variables.
    static let environmentPrefix = "EARSHOT_"
    /// The same in those by which a packaged unit gives a value that a settings file may change.
    static let unitPrefix = "EARSHOT_UNIT_"

    /// `SECTION_KEY`, as variables end.
    var environmentName: String { String(self.rawValue.uppercased().map { $0 == "." ? "_" : $0 }) }

    /// Whether a section may stand in a file.
    static func check(_ header: INIFile.Header, _ origin: SettingOrigin) throws(SettingsError) {
        guard self.sections.contains(header.section) else {
            throw SettingsError(
                origin,
                "unknown section [\(INIFile.shown(header.section))]; there are " + self.sections.map { "[\($0)]" }.joined(separator: ", "))
        }
    }

    /// Its key in a file whose section was checked, or why there is none.
    static func find(_ entry: INIFile.Entry, _ origin: SettingOrigin) throws(SettingsError) -> SettingKey {
        if let key = SettingKey(rawValue: "\(entry.section).\(entry.key)"), key.section == entry.section { return key }
        let shownKey = INIFile.shown(entry.key)
        let shownSection = INIFile.shown(entry.section)
        let keys = self.allCases.filter { $0.section == entry.section }.map(\.key)
        throw SettingsError(origin, "unknown key '\(shownKey)' in [\(shownSection)]; there are \(keys.joined(separator: ", "))")
    }
}
