public import EarshotWire

/// How two persons' comparison of digits with one peer stands.
public struct Verification: Sendable, Hashable, Codable {
    /// How far it has come.
    public enum State: String, Sendable, Hashable, Codable, CaseIterable {
        /// There is none.
        case none
        /// The peer's person has asked for it, and none here has.
        case requested
        /// A person here has asked for it, and the peer's person is waited for.
        case waiting
        /// The digits are there, and both persons compare them.
        case ready
        /// They were equal, by a person's word here.
        case matched
        /// They were not, by a person's word, or the peer has tried to choose them.
        case mismatched
        /// Given up, here or there.
        case cancelled
        case timedOut = "timed_out"
        case failed
    }

    /// With whom.
    public let peerID: PeerID
    /// Its label, untrusted.
    public let peerName: String
    /// How far it has come.
    public let state: State
    /// Six digits, once they are there.
    public let digits: String?
    /// Why it has failed.
    public let error: EarshotError.Code?
    /// The same in words, which may quote the peer.
    public let errorMessage: String?
    /// Until when it is waited for, or the digits are shown.
    package let end: WallTime?
}

extension Verification {
    private enum CodingKeys: String, CodingKey {
        case peerID = "peerId"
        case peerName, state, digits, error, errorMessage
        case end = "expiresAt"
    }

    /// Decodes a comparison.
    /// - Throws: `DecodingError` where the digits are not six, or anything else is not what it is to be.
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
