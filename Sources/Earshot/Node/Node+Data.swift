import EarshotWire
import Logging
import NIOCore
import OrderedCollections

/// A transfer's data connection, or the way to one.
struct DataRoute {
    let peer: PeerID
    /// Tells this one from an earlier one of the same transfer.
    let attempt: UInt64
    var lane: DataLane
    /// Once it stands.
    var connection: DataConnection?
    var expiry: Scheduled<Void>?
    /// Called once: with the connection, or with `nil` where neither side can dial.
    var then: ((DataConnection?) -> Void)?
}

/// Data connections for whatever moves in bulk: asked for over the control connection, dialled by whichever side can.
extension Node {
    /// Opens a data connection for a transfer; both sides call it when they have agreed that its bytes go there, and both `then` get the two
    /// ends of the same connection, or `nil` each. One that the transfer had is closed.
    ///
    /// Call it in the same turn in which the agreement is sent or comes in: the peer's ticket may be the next frame. `then` runs on the node,
    /// once, and not at all after ``closeData(_:)``.
    func openData(_ transfer: TransferID, with peer: PeerID, then: @escaping (DataConnection?) -> Void) {
        self.closeData(transfer)
        guard let record = self.records[peer], let connection = record.connection, record.session != nil else { return then(nil) }
        let (lane, action) = DataLane.begin(isInitiator: connection.isInitiator)
        self.dataAttempts += 1
        let attempt = self.dataAttempts
        self.dataRoutes[transfer] = DataRoute(
            peer: peer, attempt: attempt, lane: lane, expiry: self.schedule(.data(transfer, attempt), after: EarshotLimits.dataDialTime),
            then: then)
        self.perform(action, for: transfer)
    }

    /// Data connections, and attempts at them.
    var dataRouteCount: Int { self.dataRoutes.count }

    /// A transfer's data connection, once it stands.
    func dataConnection(_ transfer: TransferID) -> DataConnection? { self.dataRoutes[transfer]?.connection }

    /// Ends a transfer's data connection at once, and every attempt at one.
    func closeData(_ transfer: TransferID) {
        guard let route = self.dataRoutes.removeValue(forKey: transfer) else { return }
        self.transport.tickets.revoke(transfer)
        route.expiry?.cancel()
        route.connection?.close()
    }

    /// The control connection is lost, or the session has ended.
    func closeData(of peer: PeerID) {
        for (transfer, route) in self.dataRoutes where route.peer == peer { self.closeData(transfer) }
    }

    func received(_ ticket: DataTicket, from peer: PeerID) {
        self.step(ticket.transfer, from: peer) { $0.receivedTicket(ticket.token) }
    }

    func receivedDataUnavailable(_ transfer: TransferID, from peer: PeerID) {
        self.step(transfer, from: peer) { $0.receivedUnavailable() }
    }

    func dataExpired(_ transfer: TransferID, _ attempt: UInt64) {
        self.step(transfer, attempt) { $0.expired() }
    }

    func dataDialFailed(_ transfer: TransferID, _ attempt: UInt64, _ error: EarshotError) {
        self.logger.debug("cannot dial for data", metadata: ["transfer": "\(transfer)", "error": "\(error)"])
        self.step(transfer, attempt) { $0.dialFailed() }
    }

    func dataAttached(_ connection: DataConnection, _ attempt: UInt64) {
        guard self.dataRoutes[connection.transfer]?.attempt == attempt else { return connection.close() }
        self.step(connection.transfer, attempt, connection) { $0.attached() }
    }

    private func step(_ transfer: TransferID, from peer: PeerID, _ event: (inout DataLane) -> DataLane.Action) {
        guard let route = self.dataRoutes[transfer], route.peer == peer else { return }
        self.step(transfer, route.attempt, event: event)
    }

    private func step(
        _ transfer: TransferID, _ attempt: UInt64, _ connection: DataConnection? = nil, event: (inout DataLane) -> DataLane.Action
    ) {
        guard var route = self.dataRoutes[transfer], route.attempt == attempt else { return }
        let action = event(&route.lane)
        self.dataRoutes[transfer] = route
        self.perform(action, for: transfer, connection)
    }

    private func perform(_ action: DataLane.Action, for transfer: TransferID, _ connection: DataConnection? = nil) {
        guard let route = self.dataRoutes[transfer], let control = self.records[route.peer]?.connection else { return }
        switch action {
        case .wait: break
        case .issueTicket: control.send([.dataTicket(self.ticket(transfer, route, over: control))])
        case .dial(let token): self.dial(DataTicket(transfer: transfer, token: token), route, over: control)
        case .swapSides: control.send([.dataUnavailable(transfer), .dataTicket(self.ticket(transfer, route, over: control))])
        case .giveUpAndSay:
            control.send([.dataUnavailable(transfer)])
            self.settle(transfer, nil)
        case .giveUp: self.settle(transfer, nil)
        case .use: self.settle(transfer, connection)
        case .drop: connection?.close()
        }
    }

    private func settle(_ transfer: TransferID, _ connection: DataConnection?) {
        guard var route = self.dataRoutes[transfer] else { return }
        self.transport.tickets.revoke(transfer)
        route.expiry?.cancel()
        route.expiry = nil
        let then = route.then
        route.then = nil
        route.connection = connection
        self.dataRoutes[transfer] = route
        then?(connection)
    }

    private func ticket(_ transfer: TransferID, _ route: DataRoute, over control: Connection) -> DataTicket {
        let attempt = route.attempt
        let token = self.transport.tickets.issue(for: transfer, to: route.peer, over: control.peer.transport) { [input] connection in
            input.yield(.dataAttached(connection, attempt: attempt))
        }
        return DataTicket(transfer: transfer, token: token)
    }

    private func dial(_ ticket: DataTicket, _ route: DataRoute, over control: Connection) {
        let addresses = self.dataAddresses(of: route.peer, control)
        let (transport, kind, peer, attempt) = (self.transport, control.peer.transport, route.peer, route.attempt)
        self.spawn { [input] in
            do throws(EarshotError) {
                try await transport.dialData(ticket, to: peer, over: kind, at: addresses) { connection in
                    input.yield(.dataAttached(connection, attempt: attempt))
                }
            } catch {
                input.yield(.dataDialFailed(ticket.transfer, attempt: attempt, error))
            }
        }
    }

    /// Where the peer may be reached: where the control connection was dialled; else where it is seen.
    private func dataAddresses(of peer: PeerID, _ control: Connection) -> [PeerAddress] {
        if let address = control.dialledAddress { return [address] }
        guard let record = self.records[peer] else { return [] }
        let links = LocalLinks.current()
        var addresses = record.sightedAddresses.filter { links.permit($0.address, fromLoopback: $0.isLoopback) }.map(\.address)
        if let last = record.lastGoodAddress, !addresses.contains(last) { addresses.append(last) }
        return Array(addresses.prefix(EarshotLimits.addressesPerHost))
    }
}
