package import EarshotCore
package import EarshotWire

/// Space that is reserved for transfers before they begin: an accepted offer of a LocalSend device has thousands of files, and only a few
/// of them are open at a time.
extension Spool {
    /// Reserves the space for files, all of them or none. `begin` takes the space of its file, and `abandon` or ``release(_:)`` returns it.
    /// - Throws: `no-space` beyond the peer's share, the quota, the reserve or the disk; `too-large` for more than a file can hold.
    package func reserve(_ files: [DeviceReservation], _ allowance: Allowance) throws(EarshotError) {
        var rooms: [(id: ResourceID, room: SpoolLedger.Room)] = []
        for file in files {
            guard file.size <= WireLimits.resourceSize else {
                throw EarshotError(.tooLarge, "\(file.size) bytes are more than a file can hold (\(WireLimits.resourceSize))")
            }
            rooms.append((file.id, SpoolLedger.Room(file: file.size, on: self.blocks)))
        }
        try self.ledger.reserve(rooms, within: allowance, on: self.partial)
        self.promised.formUnion(files.map(\.id))
    }

    /// Returns reserved space for which no transfer has begun.
    package func release(_ ids: [ResourceID]) {
        for id in ids where self.promised.remove(id) != nil { self.ledger.release(id) }
    }
}
