internal import Earshot
internal import EarshotDiscovery
internal import EarshotSafety
internal import EarshotWire
internal import FoundationEssentials
internal import Glibc
internal import Logging

/// Everything that an administrator can set, with the defaults of earshotd.conf(5) for what is not set.
struct Settings: Sendable {
    var name: DisplayName
    var serviceType: ServiceType
    var port: UInt16 = 47110
    /// Whether the port is set: another one would surprise. 0 asks for any.
    var portIsChosen = false
    var encryption = EncryptionPreference.required
    /// PEM files, with their places, for when one cannot be used; both or neither.
    var certificate: SettingValue?
    var privateKey: SettingValue?
    /// PEM files of authorities, likewise.
    var authorities: [SettingValue] = []
    /// What was in these files, once that is looked at: what a daemon has read at its start, it goes on with.
    var certificateMark: FileMark?
    var authoritiesMark: FileMark?
    var backend = DiscoveryBackend.auto
    var advertise = true
    var browse = true
    var configuredPeers: [ConfiguredPeer] = []
    var discoveryInfo: [String: String] = [:]
    var fromUnknown = InvitationPolicy.ask
    var fromTrusted = InvitationPolicy.accept
    var pairedOnly = false
    var invitationTimeout: Duration = .seconds(300)
    var groupInvitations = InvitationPolicy.ask
    var groupFiles = GroupFilePolicy.accept
    var inboxLimit = 10_000
    /// Bytes.
    var inboxSize: UInt64 = 256 << 20
    var inboxAge: Duration = .seconds(30 * 86_400)
    var acceptResources = OfferPolicy.session
    /// With its place, for when files cannot be put there.
    var receiveDirectory: SettingValue?
    var onNameConflict = NameConflictPolicy.rename
    var outboxAge: Duration = .seconds(7 * 86_400)
    var receipts = true
    /// Bytes; no limit of its own where `nil`.
    var maximumResourceSize: UInt64?
    /// Bytes.
    var quota: UInt64 = 20 << 30
    /// Share of the file system that is left free.
    var reserve = 0.05
    var socket: String?
    /// With its place, for when there is no such group.
    var group: SettingValue?
    var logLevel = Logger.Level.info

    /// Reads the layers: the value of the highest one that has the key stands, but every one is checked.
    init(_ layers: SettingLayers, hostName: String) throws(SettingsError) {
        self.name = try Self.defaultName(hostName)
        self.serviceType = try Self.label { () throws(LabelError) in try ServiceType("earshot") }
        var checked = self
        for layer in layers.lowestFirst {
            for assignment in layer.assignments where !assignment.isReset { try checked.apply(assignment.key, assignment.value) }
            for pair in layer.info { try self.applyInfo(pair) }
        }
        let values = layers.values
        for key in SettingKey.allCases {
            if let value = values[key] { try self.apply(key, value) }
        }
        try self.checkInfo(layers.lowestFirst.flatMap(\.info).filter { !$0.isReset })
    }

    /// Takes down what the files of the identity hold, for a reload to compare.
    mutating func markFiles() {
        self.certificateMark = FileMark(self.certificate.map { [$0] } ?? [])
        self.authoritiesMark = FileMark(self.authorities)
    }

    /// Whether what they name is there and can be used.
    func check() throws(SettingsError) {
        try self.checkReceiveDirectory()
        try self.checkIdentity()
        _ = try self.groupID()
    }

    /// The number of the control socket's group, `nil` where none is set; an error where the system has no such group.
    func groupID() throws(SettingsError) -> gid_t? {
        guard let group = self.group else { return nil }
        guard let id = CallerPolicy.groupID(named: group.text) else { throw group.error("a group of this system") }
        return id
    }

    /// Whether received files can be put where they are to go.
    func checkReceiveDirectory() throws(SettingsError) {
        if let why = try self.awaitedReceiveDirectory() { throw why }
    }

    /// Why received files cannot be put where they are to go as long as that has not come, by a disk that is mounted later; `nil` where they
    /// can.
    /// - Throws: why not, where it will not come by itself: it may only be read, or is no directory.
    func awaitedReceiveDirectory() throws(SettingsError) -> SettingsError? {
        guard let directory = self.receiveDirectory else { return nil }
        do throws(EarshotError) {
            try Publisher.check(directory.text)
            return nil
        } catch {
            let why = SettingsError(directory.origin, error.message)
            if let cause = error.underlying as? FileError, [EROFS, ENOTDIR].contains(cause.code) { throw why }
            return why
        }
    }

    /// Whether received files would stay clear of the daemon's own: peers choose the names, and could take that of the identity.
    func checkReceivePlace(beside stateDirectory: String) throws(SettingsError) {
        guard let directory = self.receiveDirectory, !stateDirectory.isEmpty else { return }
        let place = DirectoryPlace(directory.text)
        guard !place.isSame(as: DirectoryPlace(stateDirectory)), !DirectoryPlace("\(stateDirectory)/spool").holds(place) else {
            throw SettingsError(
                directory.origin,
                "received files cannot be put there: the daemon has its own in \(stateDirectory.escapedForDisplay); name another directory, "
                    + "and none in its spool")
        }
    }

    /// Whether the certificate, its key and the authorities can be used; opens them, and gives the identity where it is the person's own.
    @discardableResult
    func checkIdentity() throws(SettingsError) -> Identity? {
        do throws(EarshotError) {
            _ = try CertificateAuthorities(paths: self.authorities.map(\.text))
        } catch {
            throw SettingsError(self.authorities.first?.origin ?? .defaults, error.message)
        }
        switch (self.certificate, self.privateKey) {
        case (nil, nil): return nil
        case (let certificate?, nil):
            throw SettingsError(certificate.origin, "there is a certificate but no private_key in [identity]; set both")
        case (nil, let privateKey?):
            throw SettingsError(privateKey.origin, "there is a private_key but no certificate in [identity]; set both")
        case (let certificate?, let privateKey?):
            do throws(EarshotError) {
                return try Identity.load(certificate: certificate.text, privateKey: privateKey.text, now: Date())
            } catch {
                throw SettingsError(certificate.origin, error.message)
            }
        }
    }

    private mutating func apply(_ key: SettingKey, _ value: SettingValue) throws(SettingsError) {
        switch key {
        case .peerName:
            self.name = try Self.label(value) { text throws(LabelError) in try DisplayName(text) }
        case .peerServiceType:
            self.serviceType = try Self.label(value) { text throws(LabelError) in try ServiceType(text) }
        case .peerPort:
            self.port = UInt16(truncatingIfNeeded: try value.number(0...65535))
            self.portIsChosen = true
        case .peerEncryption:
            self.encryption = try value.choice([EncryptionPreference.required, .optional, .none])
        case .identityCertificate:
            _ = try Self.absolutePath(value)
            self.certificate = value
        case .identityPrivateKey:
            _ = try Self.absolutePath(value)
            self.privateKey = value
        case .identityAuthorities:
            self.authorities = try value.text.split(separator: ",").map { part throws(SettingsError) in
                let path = SettingValue(text: String(part).trimmingBlanks, origin: value.origin)
                _ = try Self.absolutePath(path)
                return path
            }
        case .discoveryBackend: self.backend = try value.choice(DiscoveryBackend.allCases)
        case .discoveryAdvertise: self.advertise = try value.boolean()
        case .discoveryBrowse: self.browse = try value.boolean()
        case .discoveryPeers: self.configuredPeers = try Self.peers(value)
        case .invitationsFromUnknown: self.fromUnknown = try value.choice([InvitationPolicy.ask, .accept, .reject])
        case .invitationsFromTrusted: self.fromTrusted = try value.choice([InvitationPolicy.accept, .ask])
        case .invitationsPairedOnly: self.pairedOnly = try value.boolean()
        case .invitationsTimeout: self.invitationTimeout = try value.duration(.seconds(1)...EarshotLimits.invitationTimeout)
        case .groupsInvitations: self.groupInvitations = try value.choice([InvitationPolicy.ask, .accept, .reject])
        case .groupsFiles: self.groupFiles = try value.choice(GroupFilePolicy.allCases)
        case .messagesInboxLimit: self.inboxLimit = Int(truncatingIfNeeded: try value.number(1...1_000_000_000))
        case .messagesInboxSize: self.inboxSize = try value.size()
        case .messagesInboxAge: self.inboxAge = try value.duration(.zero ... .seconds(Int64(Int32.max)))
        case .resourcesAccept: self.acceptResources = try value.choice(OfferPolicy.allCases)
        case .resourcesDirectory:
            _ = try Self.absolutePath(value)
            self.receiveDirectory = value
        case .resourcesOnConflict: self.onNameConflict = try value.choice(NameConflictPolicy.allCases)
        case .messagesOutboxAge: self.outboxAge = try value.duration(.seconds(1)...EarshotLimits.outboxAgeLimit)
        case .messagesReceipts: self.receipts = try value.boolean()
        case .resourcesMaximumSize: self.maximumResourceSize = try value.size()
        case .resourcesQuota: self.quota = try value.size()
        case .resourcesReserve: self.reserve = try value.percentage()
        case .controlSocket: self.socket = try Self.absolutePath(value)
        case .controlGroup: self.group = value
        case .logLevel: self.logLevel = try value.choice(Logger.Level.allCases)
        }
    }

    /// A pair of RFC 6763 section 6 within the limits of discovery info; names differ by more than case.
    private mutating func applyInfo(_ pair: SettingLayers.InfoPair) throws(SettingsError) {
        let key = pair.key
        guard !key.isEmpty, key.utf8.allSatisfy({ (0x20...0x7E).contains($0) && $0 != UInt8(ascii: "=") }) else {
            throw SettingsError(pair.value.origin, "a key of discovery info is printable ASCII without '='")
        }
        guard !["v", "id", "name"].contains(key.lowercased()) else {
            throw SettingsError(pair.value.origin, "'\(key)' in [\(SettingKey.infoSection)] is Earshot's own; take another key")
        }
        guard key.utf8.count + 1 + pair.value.text.utf8.count <= EarshotLimits.discoveryPairBytes else {
            throw SettingsError(
                pair.value.origin, "'\(INIFile.shown(key))' and its value are longer than \(EarshotLimits.discoveryPairBytes) bytes")
        }
        if let same = self.discoveryInfo.keys.first(where: { $0.lowercased() == key.lowercased() }) { self.discoveryInfo[same] = nil }
        self.discoveryInfo[key] = pair.isReset ? nil : pair.value.text
    }

    /// What is left once the last values stand; the last pair that was given is the one too many.
    private func checkInfo(_ given: [SettingLayers.InfoPair]) throws(SettingsError) {
        let total = self.discoveryInfo.reduce(0) { $0 + $1.key.utf8.count + 1 + $1.value.utf8.count }
        guard total > EarshotLimits.discoveryInfoBytes, let last = given.last else { return }
        throw SettingsError(
            last.value.origin, "discovery info is longer than \(EarshotLimits.discoveryInfoBytes) bytes together; shorten it")
    }

    private static func peers(_ value: SettingValue) throws(SettingsError) -> [ConfiguredPeer] {
        var peers: [ConfiguredPeer] = []
        for part in value.text.split(separator: ",") {
            let text = String(part).trimmingBlanks
            if text.isEmpty { continue }
            do throws(EarshotError) {
                peers.append(try ConfiguredPeer(text))
            } catch {
                throw SettingsError(value.origin, error.message)
            }
        }
        return peers
    }

    /// A relative path would depend on where the daemon was started.
    static func absolutePath(_ value: SettingValue) throws(SettingsError) -> String {
        guard value.text.hasPrefix("/") else { throw value.error("an absolute path") }
        guard !value.text.utf8.contains(0) else { throw value.error("a path") }
        return value.text
    }

    private static func label<Label>(
        _ value: SettingValue, _ make: (String) throws(LabelError) -> Label
    ) throws(SettingsError) -> Label {
        do throws(LabelError) {
            return try make(value.text)
        } catch {
            throw SettingsError(value.origin, "'\(INIFile.shown(value.text))' does not do: \(error.description)")
        }
    }

    private static func label<Label>(_ make: () throws(LabelError) -> Label) throws(SettingsError) -> Label {
        do throws(LabelError) {
            return try make()
        } catch {
            throw SettingsError(.defaults, error.description)
        }
    }

    /// The host name up to its first dot; `earshot` where that is no display name.
    private static func defaultName(_ hostName: String) throws(SettingsError) -> DisplayName {
        if let name = try? DisplayName(String(hostName.prefix { $0 != "." })) { return name }
        return try self.label { () throws(LabelError) in try DisplayName("earshot") }
    }
}
