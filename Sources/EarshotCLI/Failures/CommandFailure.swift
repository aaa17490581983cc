import EarshotClient
import EarshotSafety

/// Why a command failed, ready to be told: the sentence and the hint are escaped already.
struct CommandFailure: Error, Hashable, Sendable {
    let status: ExitStatus
    /// The code in `--json` output: the API's, or the exit status's name.
    let code: String
    /// One lower-case sentence; `nil` when everything was said already.
    let message: String?
    /// The next thing to try; may have several lines.
    let hint: String?

    init(_ status: ExitStatus, _ message: String?, hint: String? = nil, code: String? = nil) {
        self.status = status
        self.code = code ?? status.code
        self.message = message
        self.hint = hint
    }

    /// What the API's code and sentence mean for a person; `peer` is how the person named the peer.
    init(code: String, message: String, peer: String? = nil) {
        let text = Self.sentence(message.isEmpty ? code : message)
        // The daemon's sentence may name the next step itself.
        self.init(
            ExitStatus(code: code), text, hint: text.contains("earshot ") ? nil : Self.hint(code: code, peer: peer),
            code: code.isEmpty ? nil : code.escapedForDisplay)
    }

    /// What an error of the client means; `peer` is how the person named the peer, where there was one.
    init(_ error: ControlError, peer: String? = nil) {
        switch error {
        case .unreachable(let path, let reason, let code): self = Self.unreachable(path, reason, code)
        case .silent(let path):
            self.init(
                .temporary, "what listens at \(path.escapedForDisplay) does not answer",
                hint: "look whether the daemon hangs: systemctl status earshotd", code: "daemon-silent")
        case .lost(let path, let reason):
            self.init(
                .noDaemon, "the daemon at \(path.escapedForDisplay) went away: \(reason.escapedForDisplay)",
                hint: "see what happened to it: journalctl -u earshotd", code: "daemon-lost")
        case .problem(let problem): self.init(problem, peer: peer)
        case .malformed(let what):
            self.init(
                .protocolError, what.escapedForDisplay, hint: "is it earshotd that listens there, and of the same version as this command?",
                code: "daemon-malformed")
        case .source(let what): self.init(.io, what.escapedForDisplay)
        case .output: self.init(.io, error.description.escapedForDisplay)
        case .cancelled: self.init(.failure, "cancelled", code: "cancelled")
        }
    }

    private init(_ problem: ControlAPI.Problem, peer: String?) {
        let failure = CommandFailure(code: problem.code, message: problem.detail ?? problem.title, peer: peer)
        guard let candidates = problem.candidates, !candidates.isEmpty else {
            self = failure
            return
        }
        let lines = candidates.map { "  \($0.id.escapedForDisplay)  \($0.name.escapedForDisplay)" }
        self.init(failure.status, failure.message, hint: (["say which by its id:"] + lines).joined(separator: "\n"), code: failure.code)
    }

    private static func unreachable(_ path: String, _ reason: String, _ code: CInt?) -> CommandFailure {
        if code == Errno.permission || code == Errno.access {
            return CommandFailure(
                .denied, "not permitted to use the daemon at \(path.escapedForDisplay): \(reason)", hint: Self.wayIn(path))
        }
        return CommandFailure(
            .noDaemon, "no daemon answers at \(path.escapedForDisplay): \(reason.escapedForDisplay)",
            hint: "start it: \(Self.meansOwn(path) ? Check.startOwn : "sudo systemctl start earshotd"), or run earshotd")
    }

    /// Whether the system's daemon was only asked because the user's own does not run.
    private static func meansOwn(_ path: String) -> Bool { path == ControlSocket.systemPath && DoctorFacts.Socket.hasOwnService() }

    /// What lets this user in, as `earshot doctor` has it.
    private static func wayIn(_ path: String) -> String {
        if Self.meansOwn(path) { return "start your own daemon: \(Check.startOwn)" }
        guard case .denied(let owner, let group, let isForGroup) = DoctorFacts.Socket.state(path),
            let next = Check.denied(Account.caller(), path, owner, group, isForGroup).next
        else { return "run it as the daemon's user, or join the group of its socket" }
        return next
    }

    /// Escaped, on one line, without a full stop at its end. A backslash stays single: the daemon has escaped the names in its sentences.
    private static func sentence(_ text: String) -> String {
        let escaped = text.escapedOnceMore
        return escaped.hasSuffix(".") && !escaped.hasSuffix("..") ? String(escaped.dropLast()) : escaped
    }

    private static func hint(code: String, peer: String?) -> String? {
        switch code {
        case "unknown-peer": "see who is there: earshot peers"
        case "not-connected": "ask for a session first: earshot invite \(peer?.escapedForDisplay ?? "PEER")"
        case "timed-out", "unavailable": "try again in a while"
        case "unconfirmed": "it may have arrived: ask before you send it again"
        case "not-sent": "it is safe to send it again; --queue leaves it with the daemon until the peer is back"
        case "no-space", "inbox-full": "make room there, then try again"
        default: nil
        }
    }
}
