/// Why a call to the daemon came to nothing.
public enum ControlError: Error, Hashable, Sendable {
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
    /// The caller's task was cancelled.
    case cancelled
}
