extension ControlAPI {
    /// An error of the API: problem details (RFC 9457) with a stable code.
    package struct Problem: Codable, Hashable, Sendable {
        /// The media type of a problem (RFC 9457 section 3).
        package static let mediaType = "application/problem+json"

        /// Always `about:blank`.
        package let type: String?
        /// The status in words.
        package let title: String
        /// The HTTP status code.
        package let status: Int
        /// One lower-case sentence without a full stop; may quote a peer, so untrusted.
        package let detail: String?
        /// Stable, such as `unknown-peer`.
        package let code: String
        /// With `ambiguous-peer`: what the name may mean.
        package let candidates: [Candidate]?

        /// A value from its parts.
        package init(
            type: String? = nil, title: String, status: Int, detail: String? = nil, code: String, candidates: [Candidate]? = nil
        ) {
            self.type = type
            self.title = title
            self.status = status
            self.detail = detail
            self.code = code
            self.candidates = candidates
        }

        private enum CodingKeys: String, CodingKey {
            case type, title, status, detail, code, candidates
        }
    }

    /// One of the peers that an ambiguous name may mean.
    package struct Candidate: Codable, Hashable, Sendable {
        /// 52 characters of base32.
        package let id: String
        /// A label, untrusted.
        package let name: String

        /// A value from its parts.
        package init(id: String, name: String) {
            self.id = id
            self.name = name
        }

        private enum CodingKeys: String, CodingKey {
            case id, name
        }
    }
}
