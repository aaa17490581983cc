public import FoundationEssentials

/// Why a call to the daemon came to nothing.
public enum ControlError: LocalizedError, Hashable, Sendable, CustomStringConvertible {
    /// No daemon answers at the socket; the errno where the kernel gave one.
    case unreachable(path: String, reason: String, code: CInt?)
    /// Something takes the call and does not answer.
    case silent(path: String)
    /// The daemon went away in the middle of an answer.
    case lost(path: String, reason: String)
    /// The daemon refused, and says why.
    case problem(ControlAPI.Problem)
    /// The daemon answered something that is not the API's.
    case malformed(String)
    /// What was to be uploaded could not be read, in words.
    case source(String)
    /// Received content could not be written: the reason in words, and the errno.
    case output(reason: String, code: CInt)
    /// The caller's task was cancelled.
    case cancelled

    /// One lower-case sentence without a full stop; may quote a peer, so untrusted.
    public var description: String {
        switch self {
        case .unreachable(let path, let reason, _): "the daemon at \(path) is unreachable: \(reason)"
        case .silent(let path): "the daemon at \(path) does not answer"
        case .lost(let path, let reason): "the daemon at \(path) went away: \(reason)"
        case .problem(let problem): problem.detail ?? problem.title
        case .malformed(let words), .source(let words): words
        case .output(let reason, _): "cannot write what was received: \(reason)"
        case .cancelled: "cancelled"
        }
    }

    /// The same words, as `localizedDescription` has them.
    public var errorDescription: String? { self.description }
}
