import EarshotCore
import EarshotWire
import NIOCore

/// The peers' control connections. Their frames go to the core, or to the responsible part of the node.
extension Node {
    /// The control connection to a peer.
    func connection(to peer: PeerID) -> Connection? {
        guard let link = self.inCore({ $0.facts(of: peer)?.link }) else { return nil }
        return self.links[link]
    }

    func connectionProven(_ connection: Connection) {
        let isOtherDead = self.connection(to: connection.peer.id).map { !$0.channel.isActive } ?? false
        self.links[connection.id] = connection
        self.handle(.link(connection.id, .proven(connection.facts, isOtherDead: isOtherDead)))
    }

    func connectionClosed(_ connection: Connection, _ end: LinkEnd) {
        self.handle(.link(connection.id, .closed(end)))
        self.links[connection.id] = nil
    }

    /// Whether the peer is in a session with this node and the connection is the peer's current one.
    func isMember(_ connection: Connection) -> Bool { self.inCore { $0.isMember(connection.id, connection.peer.id) } }

    func received(_ frames: [Frame], weight: Int, on connection: Connection) {
        let (link, id) = (connection.id, connection.peer.id)
        guard !self.inCore({ $0.isMuted(link) }) else {
            for frame in frames { self.handle(.link(link, .frame(frame))) }
            return connection.turnEnded(weight, isMember: false)
        }
        // Ignores a connection that a newer one has superseded.
        guard self.inCore({ $0.isCurrent(link, of: id) }) else { return connection.turnEnded(weight, isMember: false) }
        // The core does not see frames for movers, so this input tells it that the peer is alive.
        if frames.contains(where: \.isForMover) { self.handle(.link(link, .heard)) }
        var handedOn = 0
        self.coreShell.handedOn = 0
        var messages: [MessageFrame] = []
        for frame in frames {
            // Consecutive messages go to the core together.
            if case .message(let message) = frame {
                messages.append(message)
                continue
            }
            if !messages.isEmpty {
                self.handle(.link(link, .messages(messages)))
                messages = []
            }
            switch frame {
            case .resource(.chunk(let chunk)): handedOn += self.received(chunk, weight: frame.weight, on: connection)
            // The stream's window bounds its buffered bytes, so that a paused reader delays nothing else.
            case .stream(.data(let data)): self.received(data, from: id)
            case .stream(.end(let end)): self.received(end, from: id)
            case .invite, .inviteAnswer, .inviteWithdraw, .sessionResume, .sessionEnd, .verification, .dataTicket, .dataUnavailable,
                .messageReceipts, .resource, .stream, .group:
                self.handle(.link(link, .frame(frame)))
            case .message, .hello, .proof, .refusal, .ping, .pong, .goodbye, .dataAttach: break
            }
        }
        if !messages.isEmpty { self.handle(.link(link, .messages(messages))) }
        handedOn += self.coreShell.handedOn
        connection.turnEnded(weight - handedOn, isMember: self.isMember(connection))
    }

    // MARK: Dialling

    /// Dials a peer at those addresses of the plan that are on this machine's networks.
    func dial(_ peer: PeerID, _ plan: DialPlan) {
        let links = LocalLinks.current()
        let addresses = plan.addresses { links.permit($0.address, fromLoopback: $0.isLoopback) }
        guard !addresses.isEmpty else { return self.handle(.dial(peer, .nowhere)) }
        self.handle(.dial(peer, .began(addresses)))
        let transport = self.transport
        self.spawn { [input] in
            do throws(EarshotError) {
                try await transport.dial(addresses, expecting: peer)
                input.yield(.core(.dial(peer, .ended(nil))))
            } catch {
                input.yield(.core(.dial(peer, .ended(error))))
            }
        }
    }

    /// Dials a configured peer at its configured address.
    func dialConfigured(_ peer: ConfiguredPeer) {
        let transport = self.transport
        self.spawn { [input] in
            do throws(EarshotError) {
                let addresses = try await transport.lookup.addresses(of: peer)
                // Reported before the connection is proven, so that the core can match the connection to the configured peer.
                input.yield(.core(.configuredDial(peer, .began(addresses))))
                if let id = try await transport.dial(addresses, expecting: peer.id) {
                    input.yield(.core(.configuredDial(peer, .answered(id))))
                }
                input.yield(.core(.configuredDial(peer, .ended(nil))))
            } catch {
                input.yield(.core(.configuredDial(peer, .ended(error))))
            }
        }
    }
}

extension Connection {
    /// The properties of the connection that the core needs.
    var facts: LinkFacts {
        LinkFacts(
            peer: self.peer, origin: self.origin, isInitiator: self.isInitiator, dialledAddress: self.dialledAddress,
            vouchedUntil: self.vouchedUntil.map { WallTime($0) })
    }
}

extension Frame {
    /// Whether the frame bypasses the core and goes to a mover of bytes.
    fileprivate var isForMover: Bool {
        switch self {
        case .resource(.chunk), .stream(.data), .stream(.end): true
        default: false
        }
    }
}
