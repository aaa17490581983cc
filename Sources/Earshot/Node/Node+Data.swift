import EarshotCore
import EarshotWire
import Logging
import NIOCore
import OrderedCollections

/// What waits for a transfer's data connection, and then has it.
struct DataHearer {
    let transfer: TransferID
    /// Called once: with the connection, or with `nil` where neither side can dial.
    var then: ((DataConnection?) -> Void)?
    /// Once it stands.
    var connection: DataConnection?
}

/// Data connections for whatever moves in bulk: the core decides how the two sides come to one (`DataPaths`), and here its effects are
/// carried out.
extension Node {
    /// Opens a data connection for a transfer; both sides call it when they have agreed that its bytes go there, and both `then` get the two
    /// ends of the same connection, or `nil` each. One that the transfer had is closed.
    ///
    /// Call it in the same turn in which the agreement is sent or comes in: the peer's ticket may be the next frame. `then` runs on the node,
    /// once, and not at all after ``closeData(_:)``.
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

    /// A transfer's data connection, once it stands.
    func dataConnection(_ transfer: TransferID) -> DataConnection? {
        self.openAttempts[transfer].flatMap { self.dataHearers[$0]?.connection }
    }

    /// Ends a transfer's data connection at once, and every attempt at one.
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

    /// Where the peer may be reached: where the control connection was dialled; else where it is seen.
    private func dataAddresses(of peer: PeerID, _ control: Connection) -> [PeerAddress] {
        if let address = control.dialledAddress { return [address] }
        let (seen, lastGood) = self.core.places(of: peer)
        let links = LocalLinks.current()
        var addresses = seen.filter { links.permit($0.address, fromLoopback: $0.isLoopback) }.map(\.address)
        if let last = lastGood, !addresses.contains(last) { addresses.append(last) }
        return Array(addresses.prefix(EarshotLimits.addressesPerHost))
    }
}
