public import FoundationEssentials

/// The failure of a call to the daemon.
public enum ControlError: LocalizedError, Hashable, Sendable, CustomStringConvertible {
    /// No daemon answers at the socket; with the errno, if the kernel returned one.
    case unreachable(path: String, reason: String, code: CInt?)
    /// A process accepted the connection but did not answer.
    case silent(path: String)
    /// The daemon went away in the middle of an answer.
    case lost(path: String, reason: String)
    /// The daemon refused the request, with its reason.
    case problem(ControlAPI.Problem)
    /// The answer does not conform to the API.
    case malformed(String)
    /// The data to upload could not be read; with the reason.
    case source(String)
    /// Received content could not be written; with the reason and the errno.
    case output(reason: String, code: CInt)
    /// The caller's task was cancelled.
    case cancelled

    /// A lower-case sentence without a full stop; may quote a peer, so untrusted.
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

    /// The same sentence, for `localizedDescription`.
    public var errorDescription: String? { self.description }
}
