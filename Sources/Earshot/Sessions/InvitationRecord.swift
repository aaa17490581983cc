import EarshotWire
import FoundationEssentials
import NIOCore

/// An invitation with what hangs on it.
struct InvitationRecord {
    var invitation: Invitation
    var expiry: Scheduled<Void>?
    /// The connection on which the outgoing invitation was last sent.
    var sentOn: ObjectIdentifier?
    /// A decision is being written to disk: another one comes too late.
    var isDeciding = false
    var waiters: [CheckedContinuation<Invitation, Never>] = []
}
