public import EarshotWire
import OrderedCollections

/// The result of reaching a peer at a user's request: each step on the way to its answer, in order.
public struct PeerPing: Sendable, Hashable, Codable {
    /// Which connection carried the question.
    public enum Connection: String, Sendable, Hashable, Codable, CaseIterable {
        /// One that was there before.
        case standing
        /// One that was made for it; without a session it is closed again once it is idle.
        case new
    }

    /// One step.
    public struct Step: Sendable, Hashable, Codable {
        /// The step's action.
        public enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
            /// The name means a peer, and a host of the settings resolves.
            case name
            /// There is an address on this machine's networks.
            case address
            /// TCP connects there.
            case tcp
            /// The two agree on TLS, or on plaintext.
            case tls
            /// The peer proves its key, and speaks this protocol.
            case key
            /// The peer answers on the connection.
            case answer
            /// There is a session with it.
            case session
        }

        /// How a step went.
        public enum State: String, Sendable, Hashable, Codable, CaseIterable {
            case ok
            case failed
            /// Not tried, or not needed.
            case skipped
        }

        /// Which step.
        public let kind: Kind
        /// How it went.
        public let state: State
        /// One lower-case sentence.
        public let message: String
        /// Where it failed: what kind of failure.
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

    /// Which peer.
    public let peerID: PeerID
    /// Its display name: a label, untrusted.
    public let peerName: String
    /// Over which connection it answered; `nil` where it did not.
    public let connection: Connection?
    /// From the question to the answer, in nanoseconds; `nil` without an answer.
    public let roundTripNanoseconds: Int64?
    /// The steps, up to the one that failed; those behind it are skipped.
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
    /// The step that fails where a dial ends with this error.
    package init(ofFailedDial code: EarshotError.Code) {
        self =
            switch code {
            case .unavailable: .tcp
            // The connection was made, and ended before the peer had proven its key.
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

/// A peer that a person wants to reach, and where it may be.
package struct PingTarget: Sendable, Hashable {
    package let id: PeerID
    package let name: String
    /// Where discovery sees it.
    package let seen: [SightedAddress]
    /// Where a dial last succeeded.
    package let lastGood: PeerAddress?
    /// Where the settings have it.
    package let configured: [ConfiguredPeer]
    /// Whether there is a session with it.
    package let isMember: Bool
}

extension NodeCore {
    /// Whom to reach, and where: a person has asked for it, so that no session or trust is needed.
    /// - Throws: as ``resolve(_:)``; `unknown-peer` for a full id that was never seen; `forbidden` for a blocked peer; `unavailable` once the
    ///   daemon stops.
    package func pingTarget(_ name: String) throws(EarshotError) -> PingTarget {
        guard !self.isStopping else { throw .stopping }
        let id = try self.resolve(name)
        guard let record = self.records[id] else { throw .unknown(name) }
        guard record.trust != .blocked else {
            throw .blocked(record.name)
        }
        return PingTarget(
            id: id, name: record.name, seen: record.presence.sightedAddresses, lastGood: record.reach.lastGoodAddress,
            configured: record.reach.configured, isMember: record.sessionID != nil)
    }

    /// The error of a dial in words for a person.
    package func explained(_ error: EarshotError, name: String) -> EarshotError {
        error.explained(name: name, ours: self.settings.encryption)
    }
}
