internal import EarshotWire

/// LocalSend devices about which a user has decided. They have a table of their own, which earlier releases ignore.
extension Store {
    func put(device: StoredPeer) throws(SQLiteError) {
        try self.database.run(
            """
            INSERT OR REPLACE INTO devices (id, name, alias, trust, trusted_until, proven, first_seen, last_seen)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                .blob(device.id.storedBytes), .text(device.name), Self.optional(device.alias?.description), .text(device.trust.rawValue),
                device.trustedUntil.map { .integer($0.milliseconds) } ?? .null, .integer(device.isProven ? 1 : 0),
                .integer(device.firstSeen.milliseconds), .integer(device.lastSeen.milliseconds),
            ])
    }

    func loadDevices() throws(SQLiteError) -> [StoredPeer] {
        guard self.hasDevices else { return [] }
        return try self.database.query(
            "SELECT id, name, alias, trust, trusted_until, proven, first_seen, last_seen FROM devices ORDER BY id"
        ) { row throws(SQLiteError) in
            let alias = row.isNull(2) ? nil : try? DisplayName(row.text(2))
            return StoredPeer(
                id: try Self.peerID(row, 0), name: row.text(1), alias: alias, trust: try Self.value(row, 3), isTLSPinned: false,
                isProven: row.integer(5) != 0, trustedUntil: row.isNull(4) ? nil : Self.time(row.integer(4)),
                firstSeen: Self.time(row.integer(6)), lastSeen: Self.time(row.integer(7)))
        }
    }

    /// Stores the folder of a resource from a device, after the resource itself.
    func put(_ folder: String, of resource: ResourceID) throws(SQLiteError) {
        try self.database.run(
            "INSERT OR REPLACE INTO resource_folders (id, folder) VALUES (?, ?)", [.blob(resource.bytes), .text(folder)])
    }

    func loadFolders() throws(SQLiteError) -> [ResourceID: String] {
        guard self.hasDevices else { return [:] }
        let rows = try self.database.query("SELECT id, folder FROM resource_folders") { row throws(SQLiteError) -> (ResourceID, String) in
            (try Self.wireID(row, 0), row.text(1))
        }
        return Dictionary(rows) { first, _ in first }
    }
}

extension PeerID {
    /// The first stored byte of a device's id. The id of an Earshot peer has no such byte.
    private static let deviceByte: UInt8 = 1

    /// The id as the database has it: 32 bytes, and for a LocalSend device another one before them.
    var storedBytes: [UInt8] {
        switch self.kind {
        case .earshot: self.bytes
        case .localsend: [Self.deviceByte] + self.bytes
        }
    }

    /// Creates an id from its stored bytes.
    init?(storedBytes bytes: [UInt8]) {
        guard bytes.count == Self.byteCount + 1 else {
            self.init(bytes: bytes)
            return
        }
        guard bytes.first == Self.deviceByte else { return nil }
        self.init(bytes: bytes.dropFirst(), kind: .localsend)
    }
}
