import EarshotCore
import EarshotWire
import Logging
import NIOCore
import OrderedCollections

/// Data connections for bulk transfers. The core decides how the two sides establish one (`DataPaths`); this extension carries out its
/// effects.
extension Node {
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
        case .use: self.dataConnections[transfer] = self.attachedData
        case .drop: self.attachedData?.close()
        case .close: self.dataConnections.removeValue(forKey: transfer)?.close()
        }
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
