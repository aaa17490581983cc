import EarshotWire
import NIOCore
import NIOPosix

/// Dialling peers: one address after another, with the right transport.
extension Transport {
    /// Dials until one address has proven to be the peer, or any peer if none is expected. The node learns of the connection first.
    ///
    /// - Returns: The peer that answered, if there is already a connection to it. No other connection is made then.
    /// - Throws: The most significant error of the addresses. A refusal from the peer itself ranks before an answer from another machine,
    ///   and that before a silent address.
    @discardableResult
    func dial(_ addresses: [PeerAddress], expecting peer: PeerID?) async throws(EarshotError) -> PeerID? {
        var failure: EarshotError?
        for address in addresses {
            guard let socketAddress = address.socketAddress else { continue }
            do {
                try await self.dial(expecting: peer, address: address) { $0.connect(to: socketAddress) }
                return nil
            } catch {
                if let already = error.underlying as? ConnectedPeers.AlreadyConnected { return already.id }
                let error = error.at(address)
                if failure.map({ $0.weight < error.weight || error.weight > 0 && $0.weight == error.weight }) ?? true { failure = error }
            }
        }
        throw failure ?? EarshotError(.unavailable, "no address of the peer is known on this machine's networks")
    }

    /// Dials one address. A node that may use TLS tries it first. If the peer refuses it in plaintext, `optional` continues with
    /// plaintext. The refusal is unsigned, which does no harm: the signed preferences of both sides must also result in plaintext.
    private func dial(
        expecting peer: PeerID?, address: PeerAddress?, connect: (ClientBootstrap) -> EventLoopFuture<any Channel>
    ) async throws(EarshotError) {
        switch self.configuration.encryption {
        case .required:
            try await self.dial(.tls, expecting: peer, address: address, connect: connect)
        case .none:
            try await self.dial(.plaintext, expecting: peer, address: address, connect: connect)
        case .optional:
            do throws(EarshotError) {
                try await self.dial(.tls, expecting: peer, address: address, connect: connect)
                return
            } catch {
                guard error.code == .encryptionMismatch, error.underlying is PlaintextRefusal else { throw error }
            }
            if let peer, self.tlsPins.contains(peer) {
                let why = WireError.tlsPinned
                throw EarshotError(.downgradeDetected, why.description, underlying: why)
            }
            do throws(EarshotError) {
                try await self.dial(.plaintext, expecting: peer, address: address, connect: connect)
            } catch {
                // No preference refuses both transports to `optional`, so the two answers are not from the same peer.
                guard error.code == .encryptionMismatch else { throw error }
                throw EarshotError(.downgradeDetected, "the peer refuses TLS and plaintext alike", underlying: error)
            }
        }
    }

    /// Dials once, over one transport, and returns when the peer is proven; for data, when the connection is attached on this side.
    func dial(
        _ transport: TransportKind, for purpose: ConnectionHandler.Purpose = .control, expecting peer: PeerID?, address: PeerAddress?,
        connect: (ClientBootstrap) -> EventLoopFuture<any Channel>
    ) async throws(EarshotError) {
        let group = purpose.isData ? self.dataGroup : self.group
        let settled = group.next().makePromise(of: Void.self)
        let settings = self.settings(role: .initiator, purpose: purpose, expected: peer, dialled: address) {
            settled.completeWith($0.mapError { $0 })
        }
        let contexts = self.contexts
        let examiner = self.chainExaminer
        let logger = self.logger
        let bootstrap = ClientBootstrap(group: group)
            .connectTimeout(TimeAmount(EarshotLimits.connectTime))
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelOption(.recvAllocator, value: Self.strangersAllocator)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try self.track(channel, until: settled.futureResult)
                    let pipeline = channel.pipeline.syncOperations
                    switch transport {
                    case .tls:
                        let validation = CertificateValidation(examiner)
                        let tls = try contexts.clientHandler(validation)
                        try pipeline.addHandlers(
                            PlaintextAnswerHandler(), self.handshakeGate(on: channel.eventLoop), tls,
                            ConnectionHandler(
                                settings: settings, logger: logger,
                                security: .tls(validation: validation) { [weak tls] _ in Self.key(of: tls) }))
                    case .plaintext:
                        try pipeline.addHandler(ConnectionHandler(settings: settings, logger: logger, security: .plaintext))
                    }
                }
            }
        do {
            _ = try await connect(bootstrap).get()
        } catch {
            settled.fail(error)
            var words = "cannot reach \(address?.description ?? "the peer"): \(Self.reason(error))"
            // A firewall that drops packets cannot be distinguished from a machine that is off.
            if let port = address?.port, case .connectTimeout? = error as? ChannelError {
                words += "; is it on, and does its firewall admit TCP \(port)?"
            }
            throw EarshotError(.unavailable, words, underlying: error)
        }
        do {
            try await settled.futureResult.get()
        } catch let error as EarshotError {
            throw error
        } catch {
            throw EarshotError(.unavailable, "cannot reach \(address?.description ?? "the peer"): \(Self.reason(error))", underlying: error)
        }
    }
}

extension EarshotError {
    /// The significance of an address's failure for the peer.
    fileprivate var weight: Int {
        switch self.code {
        case .unavailable: 0
        case .identityMismatch: 1
        default: 2
        }
    }

    /// Adds the address if another machine than the peer has answered.
    fileprivate func at(_ address: PeerAddress) -> EarshotError {
        guard case .notTheDialled(let id)? = self.underlying as? WireError else { return self }
        let other = AnotherAnswers(at: address, id: id)
        return EarshotError(self.code, other.description, underlying: other)
    }
}
