import EarshotWire
import FoundationEssentials
import NIOCore

/// A comparison of digits as the node follows it, across the connections that it may take.
struct Comparison {
    var state: Verification.State
    var digits: String?
    var error: EarshotError?
    var expiresAt: Date?
    /// Ends what waits for too long.
    var timer: Scheduled<Void>?
    /// Tells this one's timer from an earlier one's.
    let id: VerificationID
}
