package import EarshotWire
import Synchronization

/// The tickets that this node has given out: which data connections it expects.
///
/// A token is good for one connection of the one peer that it was given to, over the transport of its control connection, for
/// `WireLimits.dataTicketSeconds`. Another peer that presents it learns nothing and does not use it up. The connections' handlers claim on
/// their event loops.
package final class DataTickets: Sendable {
    /// What a token stands for.
    package struct Ticket: Sendable {
        package let peer: PeerID
        package let transport: TransportKind
        package let transfer: TransferID
        let expires: ContinuousClock.Instant
        /// Takes the connection that was dialled.
        package let attached: @Sendable (DataConnection) -> Void
    }

    private let tickets = Mutex<[DataToken: Ticket]>([:])

    package init() {}

    /// Whether any data connection may come in: what is accepted now probably is one.
    package var isExpecting: Bool { self.tickets.withLock { !$0.isEmpty } }

    package var count: Int { self.tickets.withLock { $0.count } }

    /// Lets `peer` dial with that token. One transfer has one ticket: the one before is no longer good.
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

    /// No data connection for this transfer is expected any more.
    package func revoke(_ transfer: TransferID) {
        self.tickets.withLock { tickets in
            tickets = tickets.filter { $0.value.transfer != transfer }
        }
    }

    /// Uses a token up for the peer that it was given to; `nil` for any other peer or transport, and once it is too old.
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
