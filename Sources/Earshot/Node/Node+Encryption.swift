import EarshotWire
import Logging
import OrderedCollections

/// The encryption preference as people meet it (design section 3): what is remembered of a peer's TLS, and what is said where two
/// preferences do not agree.
extension Node {
    /// A stored peer has spoken TLS: that is on disk from now on. Of strangers it is remembered in memory alone, by the transport.
    func noteSpokenTLS(_ connection: Connection) {
        let id = connection.peer.id
        guard connection.protection == .encrypted, self.records[id]?.stored?.spokenTLS == false else { return }
        self.records[id]?.stored?.spokenTLS = true
        self.transport.spokenTLS.keep(id)
        self.keepPeer(id)
    }

    /// What the store has of a peer is not forgotten for strangers' sake.
    func keepSpokenTLS(_ stored: StoredPeer) {
        if stored.spokenTLS { self.transport.spokenTLS.keep(stored.id) }
    }

    /// Says once for every connection under a session how it is protected.
    func logProtection(of id: PeerID) {
        guard let record = self.records[id], let connection = record.connection else { return }
        let metadata: Logger.Metadata = ["peer": "\(id)", "name": "\(record.name)", "protection": "\(connection.protection.rawValue)"]
        switch connection.protection {
        case .encrypted: self.logger.info("a session stands", metadata: metadata)
        case .unprotected: self.logger.warning("a session stands unprotected: anyone on the network can read it", metadata: metadata)
        }
    }

    /// Whether both preferences, ours as it is now, give the transport of a connection.
    func preferencesYield(_ connection: Connection) -> Bool {
        TransportKind.agreed(self.configuration.encryption, connection.peer.encryption) == connection.peer.transport
    }

    /// The preference has changed: connections that it and the peer's do not yield any more end, and their sessions come back over
    /// the other transport, or say why not.
    func applyEncryption() {
        let connections = self.records.values.compactMap(\.connection) + self.mutedConnections.values
        for connection in connections where !self.preferencesYield(connection) { connection.close() }
    }

    /// The error of a dial in words for whoever has to do something about it: which setting, or which command.
    func explained(_ error: EarshotError, name: String) -> EarshotError {
        let ours = self.configuration.encryption
        let words: String
        switch (error.code, ours) {
        case (.encryptionMismatch, .required):
            words =
                "\(name) speaks plaintext only, and this machine requires encryption; "
                + "set encryption = optional in [peer] there, or here to talk unprotected"
        case (.encryptionMismatch, .none):
            words = "\(name) requires encryption, and this machine has it off; set encryption = optional in [peer] here"
        case (.encryptionMismatch, .optional):
            words = "\(name) agrees to neither TLS nor plaintext; look at encryption in [peer] there"
        case (.downgradeDetected, .optional) where error.underlying as? WireError == .spokenTLSBefore:
            words =
                "\(name) has spoken TLS with this machine before, and now speaks plaintext only; "
                + "if that is meant, run earshot distrust \(name)"
        case (.downgradeDetected, .none) where !(error.underlying is WireError):
            words =
                "\(name) does not take plaintext from this machine, which has spoken TLS with it before; "
                + "set encryption = optional in [peer] here, or run earshot distrust there"
        case (.downgradeDetected, _):
            words =
                "somebody between this machine and \(name) takes the encryption away, and nothing was sent; "
                + "set encryption = required in [peer] on both"
        default: return error
        }
        return EarshotError(error.code, words, underlying: error)
    }
}
