import Synchronization

/// The places for connections of LocalSend devices, limited in all and for each address.
///
/// A connection without a request is *unused*, and so is one whose request's body is incomplete, except an upload. If there is no place, the oldest unused connection is closed, of the same address if that
/// one has too many. Connections with a request keep their places, and the new one is refused.
struct ConnectionPlaces {
    private struct Place {
        let id: UInt64
        let origin: [UInt8]
        var isUsed = false
    }

    enum Admission: Equatable {
        /// Admitted, in the place of another connection if there is one to close.
        case admitted(closing: UInt64?)
        case refused
    }

    private var places: [Place] = []

    var count: Int { self.places.count }

    /// Admits a connection from an address, as `UnprovenConnections.origin` returns it.
    mutating func admit(_ id: UInt64, from origin: [UInt8]) -> Admission {
        var closing: UInt64?
        if self.places.count(where: { $0.origin == origin }) >= LocalSendLimits.connectionsPerAddress {
            guard let index = self.places.firstIndex(where: { $0.origin == origin && !$0.isUsed }) else { return .refused }
            closing = self.places.remove(at: index).id
        } else if self.places.count >= LocalSendLimits.connections {
            guard let index = self.places.firstIndex(where: { !$0.isUsed }) else { return .refused }
            closing = self.places.remove(at: index).id
        }
        self.places.append(Place(id: id, origin: origin))
        return .admitted(closing: closing)
    }

    /// Records whether a connection has a request.
    mutating func use(_ id: UInt64, _ isUsed: Bool) {
        guard let index = self.places.firstIndex(where: { $0.id == id }) else { return }
        self.places[index].isUsed = isUsed
    }

    mutating func remove(_ id: UInt64) {
        self.places.removeAll { $0.id == id }
    }
}

/// The open connections of devices, with the means to close them from any thread.
final class DeviceConnections: Sendable {
    private struct State {
        var places = ConnectionPlaces()
        var closers: [UInt64: @Sendable () -> Void] = [:]
        var next: UInt64 = 0
        var isStopped = false
    }

    private let state = Mutex(State())

    var count: Int { self.state.withLock { $0.places.count } }

    /// Admits a connection and returns its number; `nil` if there is no place.
    func admit(from origin: [UInt8], close: @escaping @Sendable () -> Void) -> UInt64? {
        let (id, evicted) = self.state.withLock { state -> (UInt64?, (@Sendable () -> Void)?) in
            guard !state.isStopped else { return (nil, nil) }
            state.next &+= 1
            switch state.places.admit(state.next, from: origin) {
            case .admitted(let closing):
                state.closers[state.next] = close
                return (state.next, closing.flatMap { state.closers.removeValue(forKey: $0) })
            case .refused: return (nil, nil)
            }
        }
        evicted?()
        return id
    }

    func use(_ id: UInt64, _ isUsed: Bool) { self.state.withLock { $0.places.use(id, isUsed) } }

    func remove(_ id: UInt64) {
        self.state.withLock { state in
            state.places.remove(id)
            state.closers[id] = nil
        }
    }

    /// Closes all connections, and admits no others.
    func stop() {
        let closers = self.state.withLock { state in
            state.isStopped = true
            return Array(state.closers.values)
        }
        for close in closers { close() }
    }
}
