package import NIOCore
import Synchronization

/// The connections that have not proven a key yet. Their number is limited and the oldest is evicted, so that idle strangers cannot lock
/// out a peer.
package final class UnprovenConnections: Sendable {
    private struct Entry {
        let id: LinkID
        let origin: [UInt8]
        let close: @Sendable () -> Void
    }

    private let entries = Mutex<[Entry]>([])
    private let admitted = Atomic(0)
    /// Called after a fixed number of admitted connections, because their remains are spread over the heap.
    private let many: @Sendable () -> Void

    package init(many: @escaping @Sendable () -> Void = {}) {
        self.many = many
    }

    package var count: Int { self.entries.withLock { $0.count } }

    /// Admits a connection, and closes the oldest one, of all or of the same address, if there are too many.
    package func admit(_ id: LinkID, from address: SocketAddress?, close: @escaping @Sendable () -> Void) {
        let origin = address.flatMap(Self.origin) ?? []
        let evicted = self.entries.withLock { entries -> [Entry] in
            var evicted: [Entry] = []
            entries.append(Entry(id: id, origin: origin, close: close))
            if entries.count(where: { $0.origin == origin }) > EarshotLimits.unprovenConnectionsPerAddress,
                let oldest = entries.firstIndex(where: { $0.origin == origin })
            {
                evicted.append(entries.remove(at: oldest))
            }
            if entries.count > EarshotLimits.unprovenConnections {
                evicted.append(entries.removeFirst())
            }
            return evicted
        }
        for entry in evicted { entry.close() }
        let isMany = self.admitted.add(1, ordering: .relaxed).newValue.isMultiple(of: EarshotLimits.manyUnprovenConnections)
        if isMany { self.many() }
    }

    /// Removes a connection that is proven or gone.
    package func remove(_ id: LinkID) {
        self.entries.withLock { entries in
            entries.removeAll { $0.id == id }
        }
    }

    /// Closes all unproven connections.
    func closeAll() {
        for entry in self.entries.withLock({ $0 }) { entry.close() }
    }

    /// Returns the origin that counts as one address: an IPv4 address, or an IPv6 /64, because any machine on a link can use all of those.
    package static func origin(_ address: SocketAddress) -> [UInt8]? {
        guard let bytes = LocalLinks.bytes(address) else { return nil }
        guard bytes.count == 16 else { return bytes }
        let isMapped = bytes[0..<10].allSatisfy { $0 == 0 } && bytes[10] == 0xFF && bytes[11] == 0xFF
        return isMapped ? Array(bytes[12...]) : Array(bytes[..<8])
    }
}
