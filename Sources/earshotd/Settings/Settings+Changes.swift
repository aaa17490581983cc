internal import Earshot
internal import EarshotDiscovery
internal import EarshotWire
internal import Logging

/// What a reload found.
struct SettingsChanges: Sendable, Hashable {
    /// Every name, such as `peer.name` or `discovery.info.room`, whose value is not the one that the daemon runs with.
    let changed: [String]
    /// Those of them that take effect only when the daemon is started again.
    let needsRestart: [String]
}

extension Settings {
    /// A setting's value in words that are equal where the values are: what a reload compares.
    func value(of key: SettingKey) -> String {
        switch key {
        case .peerName: self.name.description
        case .peerServiceType: self.serviceType.description
        case .peerPort: self.portIsChosen ? "\(self.port)" : "\(self.port) or any"
        case .peerEncryption: self.encryption.rawValue
        case .identityCertificate: Self.value(of: self.certificate.map { [$0] } ?? [], self.certificateMark)
        case .identityPrivateKey: self.privateKey?.text ?? ""
        case .identityAuthorities: Self.value(of: self.authorities, self.authoritiesMark)
        case .discoveryBackend: self.backend.rawValue
        case .discoveryAdvertise: "\(self.advertise)"
        case .discoveryBrowse: "\(self.browse)"
        case .discoveryPeers: self.configuredPeers.map(\.description).joined(separator: ", ")
        case .invitationsFromUnknown: self.fromUnknown.rawValue
        case .invitationsFromTrusted: self.fromTrusted.rawValue
        case .invitationsPairedOnly: "\(self.pairedOnly)"
        case .invitationsTimeout: "\(self.invitationTimeout)"
        case .groupsInvitations: self.groupInvitations.rawValue
        case .groupsFiles: self.groupFiles.rawValue
        case .messagesInboxLimit: "\(self.inboxLimit)"
        case .messagesInboxSize: "\(self.inboxSize)"
        case .messagesInboxAge: "\(self.inboxAge)"
        case .resourcesAccept: self.acceptResources.rawValue
        case .resourcesDirectory: self.receiveDirectory?.text ?? ""
        case .resourcesOnConflict: self.onNameConflict.rawValue
        case .messagesOutboxAge: "\(self.outboxAge)"
        case .messagesReceipts: "\(self.receipts)"
        case .resourcesMaximumSize: self.maximumResourceSize.map { "\($0)" } ?? ""
        case .resourcesQuota: "\(self.quota)"
        case .resourcesReserve: "\(self.reserve)"
        case .controlSocket: self.socket ?? ""
        case .controlGroup: self.group?.text ?? ""
        case .logLevel: self.logLevel.rawValue
        }
    }

    /// Paths, and what was there: either may be another.
    private static func value(of files: [SettingValue], _ mark: FileMark?) -> String {
        files.map(\.text).joined(separator: ", ") + (mark.map { " \($0.digest)" } ?? "")
    }

    /// How these differ from the settings that the daemon runs with.
    func changes(from running: Settings) -> SettingsChanges {
        let keys = SettingKey.allCases.filter { self.value(of: $0) != running.value(of: $0) }
        let info = Set(self.discoveryInfo.keys).union(running.discoveryInfo.keys)
            .filter { self.discoveryInfo[$0] != running.discoveryInfo[$0] }
        return SettingsChanges(
            changed: keys.map(\.rawValue) + info.sorted().map { "\(SettingKey.infoSection).\($0)" },
            needsRestart: keys.filter(\.needsRestart).map(\.rawValue))
    }

    /// These, as far as a running daemon can take them up: what needs a restart is as it was.
    func applied(to running: Settings) -> Settings {
        var result = self
        for key in SettingKey.allCases where key.needsRestart { result.keep(key, of: running) }
        return result
    }

    private mutating func keep(_ key: SettingKey, of running: Settings) {
        switch key {
        case .peerServiceType: self.serviceType = running.serviceType
        case .peerPort:
            self.port = running.port
            self.portIsChosen = running.portIsChosen
        case .controlSocket: self.socket = running.socket
        case .controlGroup: self.group = running.group
        case .identityCertificate:
            self.certificate = running.certificate
            self.certificateMark = running.certificateMark
        case .identityPrivateKey: self.privateKey = running.privateKey
        case .identityAuthorities:
            self.authorities = running.authorities
            self.authoritiesMark = running.authoritiesMark
        case .peerName, .peerEncryption, .discoveryBackend, .discoveryAdvertise, .discoveryBrowse, .discoveryPeers, .invitationsFromUnknown,
            .invitationsFromTrusted, .invitationsPairedOnly, .invitationsTimeout, .groupsInvitations, .groupsFiles,
            .messagesInboxLimit, .messagesInboxSize, .messagesInboxAge,
            .messagesOutboxAge, .messagesReceipts, .resourcesAccept, .resourcesDirectory, .resourcesOnConflict, .resourcesMaximumSize,
            .resourcesQuota, .resourcesReserve, .logLevel:
            // Taken up at once.
            break
        }
    }
}

extension SettingKey {
    /// Whether a change of it waits for the next start: it is bound, or shared with others, for as long as the daemon runs.
    var needsRestart: Bool {
        switch self {
        case .peerServiceType, .peerPort, .controlSocket, .controlGroup, .identityCertificate, .identityPrivateKey, .identityAuthorities:
            true
        default: false
        }
    }
}

extension Node.Configuration {
    /// What the settings say to the node.
    init(_ settings: Settings, stateDirectory: String) {
        self.init(displayName: settings.name, serviceType: settings.serviceType, stateDirectory: stateDirectory)
        self.port = settings.port
        self.portIsFixed = settings.portIsChosen
        self.encryption = settings.encryption
        self.certificate = settings.certificate?.text
        self.privateKey = settings.privateKey?.text
        self.authorities = settings.authorities.map(\.text)
        self.advertise = settings.advertise
        self.browse = settings.browse
        self.discoveryInfo = settings.discoveryInfo
        self.configuredPeers = settings.configuredPeers
        self.fromUnknown = settings.fromUnknown
        self.fromTrusted = settings.fromTrusted
        self.pairedOnly = settings.pairedOnly
        self.invitationTimeout = settings.invitationTimeout
        self.groupInvitations = settings.groupInvitations
        self.groupFiles = settings.groupFiles
        self.inboxLimit = settings.inboxLimit
        self.inboxSize = settings.inboxSize
        self.inboxAge = settings.inboxAge
        self.acceptResources = settings.acceptResources
        self.receiveDirectory = settings.receiveDirectory?.text
        self.onNameConflict = settings.onNameConflict
        self.outboxAge = settings.outboxAge
        self.receipts = settings.receipts
        self.quota = settings.quota
        self.reserve = settings.reserve
        self.maximumResourceSize = settings.maximumResourceSize
    }
}
