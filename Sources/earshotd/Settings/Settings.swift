internal import Earshot
internal import EarshotDiscovery
internal import EarshotSafety
internal import EarshotWire
internal import FoundationEssentials
internal import Glibc
internal import Logging

/// The settings of a daemon. The initial values here are placeholders: ``init(_:hostName:)`` applies the defaults of ``Setting/all``.
struct Settings: Sendable {
    /// The node's part. The loader sets its state directory.
    var node: Node.Configuration
    var backend = DiscoveryBackend.auto
    /// The path of the control socket; `nil` for the default of ``Places``.
    var socket: String?
    var group: String?
    var logLevel = Logger.Level.info
    /// The mark of the certificate's file when it was read. The running daemon keeps the contents that it read when it started.
    var certificateMark: FileMark?
    /// The mark of the authorities' files when they were read.
    var authoritiesMark: FileMark?
    /// The place of each value that is set, by the name of its setting.
    private var origins: [String: SettingOrigin] = [:]

    /// Reads the layers. The value of the highest layer applies, but the values of all layers are checked.
    init(_ layers: SettingLayers, hostName: String) throws(SettingsError) {
        let earshot = SettingValue(text: "earshot", origin: .defaults)
        let name = try SettingParser.label(DisplayName.init).parse(earshot)
        self.node = Node.Configuration(
            displayName: (try? DisplayName(String(hostName.prefix { $0 != "." }))) ?? name,
            serviceType: try SettingParser.label(ServiceType.init).parse(earshot), stateDirectory: "")
        for setting in Setting.all where !setting.defaultText.isEmpty {
            try setting.read(SettingValue(text: setting.defaultText, origin: .defaults), into: &self)
        }
        var checked = self
        for layer in layers.lowestFirst {
            for assignment in layer.assignments where !assignment.isReset { try assignment.setting.read(assignment.value, into: &checked) }
            for pair in layer.info { try self.applyInfo(pair) }
        }
        let values = layers.values
        for setting in Setting.all {
            guard let value = values[setting.name] else { continue }
            try setting.read(value, into: &self)
            self.origins[setting.name] = value.origin
        }
        try self.checkInfo(layers.lowestFirst.flatMap(\.info).filter { !$0.isReset })
    }

    /// The place of the value that a property of a setting holds.
    func origin(of path: PartialKeyPath<Settings>) -> SettingOrigin {
        Setting.all.first { $0.path == path }.flatMap { self.origins[$0.name] } ?? .defaults
    }

    /// Records the contents of the identity's files, which a reload compares.
    mutating func markFiles() {
        self.certificateMark = FileMark(self.node.certificate.map { [$0] } ?? [])
        self.authoritiesMark = FileMark(self.node.authorities)
    }

    /// Checks that the directories, files and groups that are named exist and can be used.
    func check() throws(SettingsError) {
        try self.checkReceiveDirectory()
        try self.checkIdentity()
        _ = try self.groupID()
    }

    /// Returns the number of the control socket's group, or `nil` if none is set. A group that the system does not know is an error.
    func groupID() throws(SettingsError) -> gid_t? {
        guard let group = self.group else { return nil }
        guard let id = CallerPolicy.groupID(named: group) else {
            throw SettingValue(text: group, origin: self.origin(of: \.group)).error("a group of this system")
        }
        return id
    }

    /// Checks that received files can be moved to their directory.
    func checkReceiveDirectory() throws(SettingsError) {
        if let why = try self.awaitedReceiveDirectory() { throw why }
    }

    /// Returns why received files cannot be moved to their directory yet, or `nil` if they can. The directory may appear later, for example
    /// when a disk is mounted.
    /// - Throws: the reason, if waiting does not help: the directory is read-only, or the path is no directory.
    func awaitedReceiveDirectory() throws(SettingsError) -> SettingsError? {
        guard let directory = self.node.receiveDirectory else { return nil }
        do throws(EarshotError) {
            try Publisher.check(directory)
            return nil
        } catch {
            let why = SettingsError(self.origin(of: \.node.receiveDirectory), error.message)
            if let cause = error.underlying as? FileError, [EROFS, ENOTDIR].contains(cause.code) { throw why }
            return why
        }
    }

    /// Checks that received files cannot replace the daemon's own. Peers choose the names, and could choose that of the identity.
    func checkReceivePlace(beside stateDirectory: String) throws(SettingsError) {
        guard let directory = self.node.receiveDirectory, !stateDirectory.isEmpty else { return }
        let place = DirectoryPlace(directory)
        guard !place.isSame(as: DirectoryPlace(stateDirectory)), !DirectoryPlace("\(stateDirectory)/spool").holds(place) else {
            throw SettingsError(
                self.origin(of: \.node.receiveDirectory),
                "received files cannot be put there: the daemon has its own in \(stateDirectory.escapedForDisplay); name another directory, "
                    + "and none in its spool")
        }
    }

    /// Opens the certificate, its key and the authorities, and reports what cannot be used. Returns the user's own identity, if one is set.
    @discardableResult
    func checkIdentity() throws(SettingsError) -> Identity? {
        do throws(EarshotError) {
            _ = try CertificateAuthorities(paths: self.node.authorities)
        } catch {
            throw SettingsError(self.origin(of: \.node.authorities), error.message)
        }
        switch (self.node.certificate, self.node.privateKey) {
        case (nil, nil): return nil
        case (.some, nil):
            throw SettingsError(
                self.origin(of: \.node.certificate), "there is a certificate but no private_key in [identity]; set both")
        case (nil, .some):
            throw SettingsError(self.origin(of: \.node.privateKey), "there is a private_key but no certificate in [identity]; set both")
        case (let certificate?, let privateKey?):
            do throws(EarshotError) {
                return try Identity.load(certificate: certificate, privateKey: privateKey, now: Date())
            } catch {
                throw SettingsError(self.origin(of: \.node.certificate), error.message)
            }
        }
    }

    /// Adds or removes a pair of RFC 6763 section 6, within the limits of discovery info. Keys that differ only in case are the same.
    private mutating func applyInfo(_ pair: SettingLayers.InfoPair) throws(SettingsError) {
        let key = pair.key
        guard !key.isEmpty, key.utf8.allSatisfy({ (0x20...0x7E).contains($0) && $0 != UInt8(ascii: "=") }) else {
            throw SettingsError(pair.value.origin, "a key of discovery info is printable ASCII without '='")
        }
        guard !["v", "id", "name"].contains(key.lowercased()) else {
            throw SettingsError(pair.value.origin, "'\(key)' in [\(Setting.infoSection)] is Earshot's own; take another key")
        }
        guard key.utf8.count + 1 + pair.value.text.utf8.count <= EarshotLimits.discoveryPairBytes else {
            throw SettingsError(
                pair.value.origin, "'\(INIFile.shown(key))' and its value are longer than \(EarshotLimits.discoveryPairBytes) bytes")
        }
        let same = self.node.discoveryInfo.keys.first { $0.lowercased() == key.lowercased() }
        if let same { self.node.discoveryInfo[same] = nil }
        self.node.discoveryInfo[key] = pair.isReset ? nil : pair.value.text
    }

    /// Checks the total size of the pairs that apply; the error names the last pair that was given.
    private func checkInfo(_ given: [SettingLayers.InfoPair]) throws(SettingsError) {
        let total = self.node.discoveryInfo.reduce(0) { $0 + $1.key.utf8.count + 1 + $1.value.utf8.count }
        guard total > EarshotLimits.discoveryInfoBytes, let last = given.last else { return }
        throw SettingsError(
            last.value.origin, "discovery info is longer than \(EarshotLimits.discoveryInfoBytes) bytes together; shorten it")
    }
}
