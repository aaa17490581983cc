import EarshotCore
import EarshotWire
import NIOCore

/// The peers' control connections: what comes on them goes to the core, or to the part of the node that deals with it.
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

    /// Whether the peer is in a session with this one, and this is its connection.
    func isMember(_ connection: Connection) -> Bool { self.inCore { $0.isMember(connection.id, connection.peer.id) } }

    func received(_ frames: [Frame], weight: Int, on connection: Connection) {
        let (link, id) = (connection.id, connection.peer.id)
        guard !self.inCore({ $0.isMuted(link) }) else {
            for frame in frames { self.handle(.link(link, .frame(frame))) }
            return connection.turnEnded(weight, isMember: false)
        }
        // A connection that another has superseded has nothing to say any more.
        guard self.inCore({ $0.isStanding(link, of: id) }) else { return connection.turnEnded(weight, isMember: false) }
        // Of what it is handed, the core knows by that.
        if frames.contains(where: \.isForMover) { self.handle(.link(link, .heard)) }
        var handedOn = 0
        self.coreShell.handedOn = 0
        var messages: [MessageFrame] = []
        for frame in frames {
            // As many messages together as follow each other.
            if case .message(let message) = frame {
                messages.append(message)
                continue
            }
            if !messages.isEmpty {
                self.handle(.link(link, .messages(messages)))
                messages = []
            }
            switch frame {
            case .invite, .inviteAnswer, .inviteWithdraw, .sessionResume, .sessionEnd, .verification, .dataTicket, .dataUnavailable,
                .messageReceipts, .resourceOffer, .resourceAccept, .resourceRefuse, .resourceEnd, .resourceDone, .resourceCancel,
                .resourceHave, .resourceFrom, .streamOpen, .streamAccept, .streamRefuse, .streamDone, .streamAbort, .streamReroute,
                .streamRerouted, .group:
                self.handle(.link(link, .frame(frame)))
            case .resourceChunk(let chunk): handedOn += self.received(chunk, weight: frame.weight, on: connection)
            // Its window bounds what waits for a reader, so that one that pauses holds nothing else up.
            case .streamData(let data): self.received(data, from: id)
            case .streamEnd(let end): self.received(end, from: id)
            case .message, .hello, .proof, .refusal, .ping, .pong, .goodbye, .dataAttach: break
            }
        }
        if !messages.isEmpty { self.handle(.link(link, .messages(messages))) }
        handedOn += self.coreShell.handedOn
        connection.turnEnded(weight - handedOn, isMember: self.isMember(connection))
    }

    // MARK: Dialling

    /// Dials a peer where it may be reached from here.
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

    /// Dials a peer where the settings say.
    func dialConfigured(_ peer: ConfiguredPeer) {
        let transport = self.transport
        self.spawn { [input] in
            do throws(EarshotError) {
                let addresses = try await transport.lookup.addresses(of: peer)
                // Before the connection is proven, so that it is known whose it is.
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
    /// What the core has to know of it.
    var facts: LinkFacts {
        LinkFacts(
            peer: self.peer, origin: self.origin, isInitiator: self.isInitiator, dialledAddress: self.dialledAddress,
            vouchedUntil: self.vouchedUntil.map { WallTime($0) })
    }
}

extension Frame {
    /// Whether it goes to what moves bytes, past the core.
    fileprivate var isForMover: Bool {
        switch self {
        case .resourceChunk, .streamData, .streamEnd: true
        default: false
        }
    }
}
