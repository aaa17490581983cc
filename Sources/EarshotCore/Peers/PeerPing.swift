public import EarshotWire
import OrderedCollections

/// The result of reaching a peer at a user's request: each step up to the peer's answer, in order.
public struct PeerPing: Sendable, Hashable, Codable {
    /// The connection that carried the question.
    public enum Connection: String, Sendable, Hashable, Codable, CaseIterable {
        /// A connection that existed before.
        case standing
        /// A connection that was made for the ping. Without a session, it is closed again when it is idle.
        case new
    }

    /// A step of the ping.
    public struct Step: Sendable, Hashable, Codable {
        /// The step's action.
        public enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
            /// The name resolves to a peer, and a configured host name resolves to an address.
            case name
            /// An address on this machine's networks is known.
            case address
            /// A TCP connection to an address is established.
            case tcp
            /// Both sides agree on TLS, or on plaintext.
            case tls
            /// The peer proves its key and speaks this protocol.
            case key
            /// The peer answers on the connection.
            case answer
            /// A session with the peer exists.
            case session
        }

        /// The result of a step.
        public enum State: String, Sendable, Hashable, Codable, CaseIterable {
            case ok
            case failed
            /// The step was not tried, or not needed.
            case skipped
        }

        /// The action of the step.
        public let kind: Kind
        /// The result of the step.
        public let state: State
        /// A lower-case sentence.
        public let message: String
        /// The kind of failure, if the step failed.
        public let code: EarshotError.Code?

        package init(_ kind: Kind, _ state: State, _ message: String, code: EarshotError.Code? = nil) {
            self.kind = kind
            self.state = state
            self.message = message
            self.code = code
        }

        private enum CodingKeys: String, CodingKey {
            case kind, state, message, code
        }
    }

    /// The peer's id.
    public let peerID: PeerID
    /// The peer's display name: a label, untrusted.
    public let peerName: String
    /// The connection on which the peer answered; `nil` without an answer.
    public let connection: Connection?
    /// The time from the question to the answer, in nanoseconds; `nil` without an answer.
    public let roundTripNanoseconds: Int64?
    /// The steps up to the failed one; later steps are skipped.
    public let steps: [Step]

    package init(peerID: PeerID, peerName: String, connection: Connection?, roundTripNanoseconds: Int64?, steps: [Step]) {
        self.peerID = peerID
        self.peerName = peerName
        self.connection = connection
        self.roundTripNanoseconds = roundTripNanoseconds
        self.steps = steps
    }

    private enum CodingKeys: String, CodingKey {
        case peerID = "peerId"
        case peerName, connection, roundTripNanoseconds, steps
    }
}

extension PeerPing.Step.Kind {
    /// Returns the step that failed if a dial ends with this error.
    package init(ofFailedDial code: EarshotError.Code) {
        self =
            switch code {
            case .unavailable: .tcp
            // The connection was made, and was lost before the peer had proven its key.
            case .notConnected, .timedOut, .encryptionMismatch, .downgradeDetected, .cancelled: .tls
            case .identityMismatch, .versionUnsupported, .serviceMismatch, .protocolViolation, .unsupported, .busy, .declined, .forbidden,
                .conflict:
                .key
            case .invalidParameter, .unknownPeer, .ambiguousPeer, .notFound, .unknownGroup, .ambiguousGroup, .notMember, .unconfirmed,
                .notSent, .inboxFull, .tooLarge, .nameRejected, .noSpace, .digestMismatch, .sourceChanged, .invalidSource, .storage:
                .key
            }
    }
}

/// A peer that a user wants to reach, with its addresses.
package struct PingTarget: Sendable, Hashable {
    package let id: PeerID
    package let name: String
    /// The addresses at which discovery sees the peer.
    package let seen: [SightedAddress]
    /// The address at which a dial last succeeded.
    package let lastGood: PeerAddress?
    /// The addresses in the settings.
    package let configured: [ConfiguredPeer]
    /// Whether there is a session with the peer.
    package let isMember: Bool
}

extension NodeCore {
    /// Returns the peer to reach and its addresses. The user asked for it, so that no session or trust is needed.
    /// - Throws: as ``resolve(_:)``; `unknown-peer` for a full id that was never seen; `forbidden` for a blocked peer; `unavailable` while
    ///   the daemon stops.
    package func pingTarget(_ name: String) throws(EarshotError) -> PingTarget {
        guard !self.isStopping else { throw .stopping }
        let id = try self.resolvePeer(name)
        guard let record = self.records[id] else { throw .unknown(name) }
        guard record.trust != .blocked else {
            throw .blocked(record.name)
        }
        return PingTarget(
            id: id, name: record.name, seen: record.presence.sightedAddresses, lastGood: record.reach.lastGoodAddress,
            configured: record.reach.configured, isMember: record.sessionID != nil)
    }

    /// Returns the error of a dial in words for a user.
    package func explained(_ error: EarshotError, name: String) -> EarshotError {
        error.explained(name: name, ours: self.settings.encryption)
    }
}
