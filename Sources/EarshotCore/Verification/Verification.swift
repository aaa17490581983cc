public import EarshotWire

/// The state of a comparison of digits, which two users make for one peer.
public struct Verification: Sendable, Hashable, Codable {
    /// The progress of a comparison.
    public enum State: String, Sendable, Hashable, Codable, CaseIterable {
        /// There is no comparison.
        case none
        /// The user of the peer has asked for a comparison, and no user here has.
        case requested
        /// A user here has asked for a comparison, and waits for the peer's user.
        case waiting
        /// The digits are available, and both users compare them.
        case ready
        /// The digits were equal, according to a user here.
        case matched
        /// The digits differed, according to a user, or the peer has tried to choose them.
        case mismatched
        /// A user here or there has cancelled the comparison.
        case cancelled
        case timedOut = "timed_out"
        case failed
    }

    /// The peer's id.
    public let peerID: PeerID
    /// The peer's display name, an untrusted label.
    public let peerName: String
    /// The progress of the comparison.
    public let state: State
    /// The six digits, when they are available.
    public let digits: String?
    /// The kind of failure.
    public let error: EarshotError.Code?
    /// The reason in words, which may quote the peer.
    public let errorMessage: String?
    /// The time at which the comparison stops waiting, or the digits are no longer shown.
    package let end: WallTime?
}

extension Verification {
    private enum CodingKeys: String, CodingKey {
        case peerID = "peerId"
        case peerName, state, digits, error, errorMessage
        case end = "expiresAt"
    }

    /// Decodes a comparison.
    /// - Throws: `DecodingError` if the digits are not six digits, or if another field is missing or has the wrong type.
    public init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        self.peerID = try fields.decode(PeerID.self, forKey: .peerID)
        self.peerName = try fields.decode(String.self, forKey: .peerName)
        self.state = try fields.decode(State.self, forKey: .state)
        self.digits = try fields.decodeIfPresent(String.self, forKey: .digits)
        self.error = try fields.decodeIfPresent(EarshotError.Code.self, forKey: .error)
        self.errorMessage = try fields.decodeIfPresent(String.self, forKey: .errorMessage)
        self.end = try fields.decodeIfPresent(WallTime.self, forKey: .end)
        let isDigit = { (byte: UInt8) in (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
        guard self.digits.map({ $0.utf8.count == 6 && $0.utf8.allSatisfy(isDigit) }) ?? true else {
            throw fields.fault(.digits, "the digits are six of 0 to 9")
        }
    }
}
