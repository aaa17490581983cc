extension ControlAPI {
    /// What this machine thinks of a peer id.
    package enum Trust: String, Hashable, Sendable, CaseIterable {
        case unknown
        case trusted
        case blocked
    }

    /// Who trusts or blocks a peer.
    package enum TrustSource: String, Hashable, Sendable, CaseIterable {
        case person
        case authority
    }

    /// What came of the last comparison of digits with a peer.
    package enum Verified: String, Hashable, Sendable, CaseIterable {
        case matched
        case mismatched
    }

    /// Multipeer Connectivity's states of a member of a session.
    package enum MemberState: String, Hashable, Sendable, CaseIterable {
        case notConnected = "not_connected"
        case connecting
        case connected
    }

    /// Whether what passes between two peers can be read on the wire.
    package enum Protection: String, Hashable, Sendable, CaseIterable {
        case encrypted
        case unprotected
    }

    /// Which way something went, seen from the daemon.
    package enum Direction: String, Hashable, Sendable, CaseIterable {
        case incoming
        case outgoing
    }

    /// Why something failed: a stable code and a sentence for a person.
    package struct Failure: Codable, Hashable, Sendable {
        /// As in ``Problem/code``.
        package let code: String
        /// One lower-case sentence without a full stop; may quote a peer, so untrusted.
        package let message: String

        /// A value from its parts.
        package init(code: String, message: String) {
            self.code = code
            self.message = message
        }

        private enum CodingKeys: String, CodingKey {
            case code, message
        }
    }
}
