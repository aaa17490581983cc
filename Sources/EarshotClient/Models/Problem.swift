public import EarshotWire

extension ControlAPI {
    /// An error of the API: problem details (RFC 9457) with a stable code.
    public struct Problem: Codable, Hashable, Sendable {
        /// The media type of a problem (RFC 9457 section 3).
        public static let mediaType = "application/problem+json"

        /// Always `about:blank`.
        public let type: String?
        /// The HTTP status's phrase.
        public let title: String
        /// The HTTP status code.
        public let status: Int
        /// A lower-case sentence without a full stop; may quote a peer, so untrusted.
        public let detail: String?
        /// The kind of failure.
        public let code: Tolerant<ErrorCode>
        /// With `ambiguous-peer`: the peers that the name may mean.
        public let candidates: [Candidate]?
        /// The suggested step for the user, if the code alone does not determine it.
        public let remedy: Tolerant<Remedy>?

        /// Creates a value from its parts.
        public init(
            type: String? = nil, title: String, status: Int, detail: String? = nil, code: Tolerant<ErrorCode>,
            candidates: [Candidate]? = nil, remedy: Tolerant<Remedy>? = nil
        ) {
            self.type = type
            self.title = title
            self.status = status
            self.detail = detail
            self.code = code
            self.candidates = candidates
            self.remedy = remedy
        }

        private enum CodingKeys: String, CodingKey {
            case type, title, status, detail, code, candidates, remedy
        }
    }

    /// A peer that an ambiguous name may mean.
    public struct Candidate: Codable, Hashable, Sendable {
        /// The peer's id: 52 characters of base32.
        public let id: PeerID
        /// The peer's display name, untrusted.
        public let name: String

        /// Creates a value from its parts.
        public init(id: PeerID, name: String) {
            self.id = id
            self.name = name
        }

        private enum CodingKeys: String, CodingKey {
            case id, name
        }
    }
}
