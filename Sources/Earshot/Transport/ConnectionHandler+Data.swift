import EarshotWire
import NIOCore

/// Data connections go through the whole handshake here; with their token they leave this handler behind.
extension ConnectionHandler {
    /// Whether a connection whose peer is proven carries data, as its initiator's hello says.
    func isForData(_ peer: ProvenPeer) -> Bool {
        switch (self.settings.role, self.settings.purpose) {
        case (.initiator, .data): true
        case (.initiator, .control): false
        case (.responder, _): peer.extensions.contains { $0.type == HelloExtension.dataConnection.type }
        }
    }

    /// The side that dialled says its token. The other one waits for it, under the limits of an unproven connection: a proven key alone
    /// entitles to nothing here.
    func proven(forData peer: ProvenPeer, context: ChannelHandlerContext) {
        // Neither the node nor a person is asked about it: its token says what it may.
        self.validation?.withdraw()
        guard case .data(let ticket, let attached) = self.settings.purpose else {
            self.state = .attaching(peer)
            return
        }
        self.writeAccounted([.dataAttach(ticket.token)], context: context)
        self.handOver(peer, ticket.transfer, attached, context: context)
    }

    /// The first frame of a data connection that came in.
    func received(_ frame: Frame, attaching peer: ProvenPeer, context: ChannelHandlerContext) throws(WireError) {
        guard case .dataAttach(let token) = frame else {
            throw .outOfOrder(frame.type, why: "a data connection begins with its token")
        }
        guard let ticket = self.settings.tickets.claim(token, by: peer.id, over: peer.transport) else { throw .unknownToken }
        self.handOver(peer, ticket.transfer, ticket.attached, context: context)
    }

    /// The rest of the connection is the transfer's.
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
