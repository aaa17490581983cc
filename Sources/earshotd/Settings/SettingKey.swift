/// Every key of the settings file that takes effect, by section; the raw value is `section.key`.
///
/// `[discovery.info]` is not among them: its keys are the user's own.
enum SettingKey: String, Sendable, Hashable, CaseIterable {
    case peerName = "peer.name"
    case peerServiceType = "peer.service_type"
    case peerPort = "peer.port"
    case peerEncryption = "peer.encryption"
    case discoveryBackend = "discovery.backend"
    case discoveryAdvertise = "discovery.advertise"
    case discoveryBrowse = "discovery.browse"
    case discoveryPeers = "discovery.peers"
    case invitationsFromUnknown = "invitations.from_unknown"
    case invitationsFromTrusted = "invitations.from_trusted"
    case invitationsTimeout = "invitations.timeout"
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
    static let sections = ["peer", "identity", "discovery", infoSection, "invitations", "messages", "resources", "control", "log"]

    /// Keys of the design that a later version brings, with the words for their defaults: the example file of the design is accepted as
    /// it stands, and any other value is refused, since an honest error now beats a setting without effect. An empty one is a default too.
    private static let later: [String: Set<String>] = [
        "identity.certificate": [], "identity.private_key": [], "identity.authorities": [],
    ]

    /// Lets a later key pass that holds its default, and says of every other that it would have no effect.
    ///
    /// - Returns: whether the name is that of a later key.
    static func checkLater(section: String, key: String, _ value: SettingValue) throws(SettingsError) -> Bool {
        guard let defaults = self.later["\(section).\(key)"] else { return false }
        guard value.text.isEmpty || defaults.contains(value.text.lowercased()) else {
            throw SettingsError(
                value.origin, "'\(key) = \(INIFile.shown(value.text))' in [\(section)] is not supported by this version; remove it")
        }
        return true
    }

    /// The same for the environment.
    static func checkLater(environment: [String: String]) throws(SettingsError) {
        for name in self.later.keys.sorted() {
            let parts = name.split(separator: ".").map(String.init)
            let variable = Self.environmentName(name)
            guard parts.count == 2, let text = environment[variable] else { continue }
            _ = try self.checkLater(section: parts[0], key: parts[1], SettingValue(text: text, origin: .environment(variable)))
        }
    }

    /// The part before the last dot.
    var section: String { String(self.rawValue.prefix { $0 != "." }) }
    /// The part after it.
    var key: String { String(self.rawValue.drop { $0 != "." }.dropFirst()) }

    /// `EARSHOT_SECTION_KEY`.
    var environmentName: String { Self.environmentName(self.rawValue) }

    private static func environmentName(_ name: String) -> String {
        "EARSHOT_" + String(name.uppercased().map { $0 == "." ? "_" : $0 })
    }

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
        let later = self.later.keys.sorted().filter { $0.hasPrefix(entry.section + ".") }.map { $0.dropFirst(entry.section.count + 1) }
        let keys = self.allCases.filter { $0.section == entry.section }.map(\.key) + later.map(String.init)
        throw SettingsError(origin, "unknown key '\(shownKey)' in [\(shownSection)]; there are \(keys.joined(separator: ", "))")
    }
}
