package import EarshotWire
import Synchronization

/// The tickets that this node has issued, which determine the data connections that it accepts.
///
/// A token is valid for one connection of the peer that it was issued to, over the transport of its control connection, for
/// `WireLimits.dataTicketSeconds`. Another peer that presents the token learns nothing, and does not use it up. The connections' handlers
/// claim tickets on their event loops.
package final class DataTickets: Sendable {
    /// The rights of a token.
    package struct Ticket: Sendable {
        package let peer: PeerID
        package let transport: TransportKind
        package let transfer: TransferID
        let expires: ContinuousClock.Instant
        /// Receives the dialled connection.
        package let attached: @Sendable (DataConnection) -> Void
    }

    private let tickets = Mutex<[DataToken: Ticket]>([:])

    package init() {}

    /// Whether any data connection is expected. A newly accepted connection then probably is one.
    package var isExpecting: Bool { self.tickets.withLock { !$0.isEmpty } }

    package var count: Int { self.tickets.withLock { $0.count } }

    /// Allows `peer` to dial with the token. A transfer has one ticket; an earlier one becomes invalid.
    package func expect(
        _ token: DataToken, for transfer: TransferID, from peer: PeerID, over transport: TransportKind,
        now: ContinuousClock.Instant = .now, attached: @escaping @Sendable (DataConnection) -> Void
    ) {
        let ticket = Ticket(
            peer: peer, transport: transport, transfer: transfer, expires: now + .seconds(WireLimits.dataTicketSeconds), attached: attached)
        self.tickets.withLock { tickets in
            tickets = tickets.filter { $0.value.transfer != transfer && $0.value.expires > now }
            tickets[token] = ticket
        }
    }

    /// Revokes the ticket of a transfer.
    package func revoke(_ transfer: TransferID) {
        self.tickets.withLock { tickets in
            tickets = tickets.filter { $0.value.transfer != transfer }
        }
    }

    /// Uses up a token for the peer that it was issued to. Returns `nil` for any other peer or transport, and if the token has expired.
    package func claim(
        _ token: DataToken, by peer: PeerID, over transport: TransportKind, now: ContinuousClock.Instant = .now
    ) -> Ticket? {
        self.tickets.withLock { tickets in
            guard let ticket = tickets[token], ticket.peer == peer, ticket.transport == transport else { return nil }
            tickets[token] = nil
            return ticket.expires > now ? ticket : nil
        }
    }
}
