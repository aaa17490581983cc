import EarshotWire
import NIOCore

/// Data connections. They use the whole handshake here, and leave this handler once they have presented their token.
extension ConnectionHandler {
    /// Whether a connection with a proven peer is for data, according to its initiator's hello.
    func isForData(_ peer: ProvenPeer) -> Bool {
        switch (self.settings.role, self.settings.purpose) {
        case (.initiator, .data): true
        case (.initiator, .control): false
        case (.responder, _): peer.extensions.announce(.dataConnection)
        }
    }

    /// Sends the token from the side that dialled. The other side waits for it, under the limits of an unproven connection, because a
    /// proven key alone is no permission for a data connection.
    func proven(forData peer: ProvenPeer, context: ChannelHandlerContext) {
        // Neither the node nor the user decides about a data connection: its token is its permission.
        self.validation?.withdraw()
        guard case .data(let ticket, let attached) = self.settings.purpose else {
            self.state = .attaching(peer)
            return
        }
        self.writeAccounted([.dataAttach(ticket.token)], context: context)
        self.handOver(peer, ticket.transfer, attached, context: context)
    }

    /// Handles the first frame of an incoming data connection.
    func received(_ frame: Frame, attaching peer: ProvenPeer, context: ChannelHandlerContext) throws(WireError) {
        guard case .dataAttach(let token) = frame else {
            throw .outOfOrder(frame.type, why: "a data connection begins with its token")
        }
        guard let ticket = self.settings.tickets.claim(token, by: peer.id, over: peer.transport) else { throw .unknownToken }
        self.handOver(peer, ticket.transfer, ticket.attached, context: context)
    }

    /// Hands the connection over to its transfer.
    private func handOver(
        _ peer: ProvenPeer, _ transfer: TransferID, _ attached: (DataConnection) -> Void, context: ChannelHandlerContext
    ) {
        self.state = .closed
        self.deadline?.cancel()
        let channel = context.channel
        do {
            let connection = try DataConnection(channel, behind: self, peer: peer, transfer: transfer, logger: self.logger)
            let rest = self.decoder.takeRest()
            if rest.readableBytes > 0 { context.fireChannelRead(NIOAny(rest)) }
            context.pipeline.syncOperations.removeHandler(self, promise: nil)
            attached(connection)
            self.settings.settled(.success(()))
            Transport.readForData(channel)
        } catch {
            self.settings.settled(.failure(EarshotError(.unavailable, "cannot set a data connection up", underlying: error)))
            context.close(promise: nil)
        }
    }
}
