import EarshotCore
import EarshotWire
import Logging
import NIOCore
import OrderedCollections

/// The transfer that waits for a data connection and then owns it.
struct DataHearer {
    let transfer: TransferID
    /// Called once: with the connection, or with `nil` if neither side can dial.
    var then: ((DataConnection?) -> Void)?
    /// The connection, once it is established.
    var connection: DataConnection?
}

/// Data connections for bulk transfers. The core decides how the two sides establish one (`DataPaths`); this extension carries out its
/// effects.
extension Node {
    /// Opens a data connection for a transfer, and closes an earlier one of that transfer. Both sides call this function when they have
    /// agreed to use a data connection. Both `then` receive their ends of the same connection, or both receive `nil`.
    ///
    /// Call it in the same turn in which the agreement is sent or received: the peer's ticket may be the next frame. `then` runs on the
    /// node, once, and never after ``closeData(_:)``.
    func openData(_ transfer: TransferID, with peer: PeerID, then: @escaping (DataConnection?) -> Void) {
        self.closeData(transfer)
        guard let connection = self.connection(to: peer), self.core.isTalking(with: peer) else { return then(nil) }
        self.dataAttempts += 1
        self.openAttempts[transfer] = self.dataAttempts
        self.dataHearers[self.dataAttempts] = DataHearer(transfer: transfer, then: then)
        self.handle(
            .dataPath(
                transfer, .wanted(peer, link: connection.id, isInitiator: connection.isInitiator, attempt: self.dataAttempts)))
    }

    /// Returns a transfer's data connection, if it is established.
    func dataConnection(_ transfer: TransferID) -> DataConnection? {
        self.openAttempts[transfer].flatMap { self.dataHearers[$0]?.connection }
    }

    /// Closes a transfer's data connection, and ends every attempt to establish one.
    func closeData(_ transfer: TransferID) {
        guard let attempt = self.openAttempts[transfer] else { return }
        self.forgetData(attempt)
        self.handle(.dataPath(transfer, .over))
    }

    func dataDialFailed(_ transfer: TransferID, _ attempt: UInt64, _ error: EarshotError) {
        self.logger.debug("cannot dial for data", metadata: ["transfer": "\(transfer)", "error": "\(error)"])
        self.handle(.dataPath(transfer, .dialFailed(attempt: attempt)))
    }

    func dataAttached(_ connection: DataConnection, _ attempt: UInt64) {
        self.attachedData = connection
        self.handle(.dataPath(connection.transfer, .attached(attempt: attempt)))
        self.attachedData = nil
    }

    // MARK: Effects

    func carryOut(_ effect: DataPathEffect, for transfer: TransferID) {
        switch effect {
        case .expect(let token, let peer, let link, let attempt):
            guard let control = self.links[link] else { return }
            self.transport.tickets.expect(token, for: transfer, from: peer, over: control.peer.transport) { [input] connection in
                input.yield(.dataAttached(connection, attempt: attempt))
            }
        case .dial(let token, let peer, let link, let attempt):
            guard let control = self.links[link] else { return }
            self.dial(DataTicket(transfer: transfer, token: token), to: peer, over: control, attempt)
        case .revoke: self.transport.tickets.revoke(transfer)
        case .use(let attempt): self.settle(attempt, self.attachedData)
        case .doWithout(let attempt): self.settle(attempt, nil)
        case .drop: self.attachedData?.close()
        case .close(let attempt): self.forgetData(attempt)
        }
    }

    private func settle(_ attempt: UInt64, _ connection: DataConnection?) {
        guard let hearer = self.dataHearers[attempt] else {
            connection?.close()
            return
        }
        self.dataHearers[attempt]?.then = nil
        self.dataHearers[attempt]?.connection = connection
        hearer.then?(connection)
    }

    private func forgetData(_ attempt: UInt64) {
        guard let hearer = self.dataHearers.removeValue(forKey: attempt) else { return }
        if self.openAttempts[hearer.transfer] == attempt { self.openAttempts[hearer.transfer] = nil }
        hearer.connection?.close()
    }

    private func dial(_ ticket: DataTicket, to peer: PeerID, over control: Connection, _ attempt: UInt64) {
        let addresses = self.dataAddresses(of: peer, control)
        let (transport, kind) = (self.transport, control.peer.transport)
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

    /// Returns the peer's addresses: the dialled address of the control connection, else the addresses at which discovery sees the peer.
    private func dataAddresses(of peer: PeerID, _ control: Connection) -> [PeerAddress] {
        if let address = control.dialledAddress { return [address] }
        let (seen, lastGood) = self.core.places(of: peer)
        let links = LocalLinks.current()
        var addresses = seen.filter { links.permit($0.address, fromLoopback: $0.isLoopback) }.map(\.address)
        if let last = lastGood, !addresses.contains(last) { addresses.append(last) }
        return Array(addresses.prefix(EarshotLimits.addressesPerHost))
    }
}
