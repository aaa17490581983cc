import EarshotClient
import EarshotSafety

/// Why a command failed, ready to print: the sentence and the hint are escaped.
struct CommandFailure: Error, Hashable, Sendable {
    let status: ExitStatus
    /// The code in `--json` output: the API's, or the exit status's name.
    let code: String
    /// One lower-case sentence; `nil` if everything has been reported already.
    let message: String?
    /// The next step for the user; may have several lines.
    let hint: String?

    init(_ status: ExitStatus, _ message: String?, hint: String? = nil, code: String? = nil) {
        self.status = status
        self.code = code ?? status.code
        self.message = message
        self.hint = hint
    }

    /// Creates the failure for an error code and sentence of the API; `peer` is the name that the user gave for the peer.
    init(
        code: Tolerant<ControlAPI.ErrorCode>?, message: String, remedy: Tolerant<ControlAPI.Remedy>? = nil, peer: String? = nil
    ) {
        let name = peer?.escapedForDisplay ?? "PEER"
        self.init(
            ExitStatus(code: code), Self.sentence(message.isEmpty ? code?.rawValue ?? "" : message),
            hint: remedy?.known.map { Self.hint($0, name) } ?? code?.known.flatMap { Self.hint($0, name) },
            code: code?.rawValue.escapedForDisplay)
    }

    /// Creates the failure for an error of the client; `peer` is the name that the user gave for the peer, if any.
    init(_ error: ControlError, peer: String? = nil) {
        switch error {
        case .unreachable(let path, let reason, let code): self = Self.unreachable(path, reason, code)
        case .silent(let path):
            self.init(
                .temporary, "the daemon at \(path.escapedForDisplay) does not answer",
                hint: "check whether the daemon hangs: systemctl status earshotd", code: "daemon-silent")
        case .lost(let path, let reason):
            self.init(
                .noDaemon, "lost the connection to the daemon at \(path.escapedForDisplay): \(reason.escapedForDisplay)",
                hint: "see its log: journalctl -u earshotd", code: "daemon-lost")
        case .problem(let problem): self.init(problem, peer: peer)
        case .malformed(let what):
            self.init(
                .protocolError, what.escapedForDisplay,
                hint: "check that earshotd listens there, and that its version is the same as this command's",
                code: "daemon-malformed")
        case .source(let what): self.init(.io, what.escapedForDisplay)
        case .output: self.init(.io, error.description.escapedForDisplay)
        case .cancelled: self.init(.failure, "cancelled", code: "cancelled")
        }
    }

    private init(_ problem: ControlAPI.Problem, peer: String?) {
        let failure = CommandFailure(
            code: problem.code, message: problem.detail ?? problem.title, remedy: problem.remedy, peer: peer)
        guard let candidates = problem.candidates, !candidates.isEmpty else {
            self = failure
            return
        }
        let lines = candidates.map { "  \($0.id)  \($0.name.escapedForDisplay)" }
        self.init(failure.status, failure.message, hint: (["choose one by its id:"] + lines).joined(separator: "\n"), code: failure.code)
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

    /// Whether the system's daemon was asked only because the user's own daemon does not run.
    private static func meansOwn(_ path: String) -> Bool { path == ControlSocket.systemPath && DoctorFacts.Socket.hasOwnService() }

    /// The step that gives this user access, as `earshot doctor` suggests it.
    private static func wayIn(_ path: String) -> String {
        if Self.meansOwn(path) { return "start your own daemon: \(Check.startOwn)" }
        guard case .denied(let owner, let group, let isForGroup) = DoctorFacts.Socket.state(path),
            let next = Check.denied(Account.caller(), path, owner, group, isForGroup).next
        else { return "run it as the daemon's user, or join the group of its socket" }
        return next
    }

    /// The sentence, escaped, on one line, without a full stop at its end. A backslash stays single, since the daemon has already escaped
    /// the names in its sentences.
    private static func sentence(_ text: String) -> String {
        let escaped = text.escapedOnceMore
        return escaped.hasSuffix(".") && !escaped.hasSuffix("..") ? String(escaped.dropLast()) : escaped
    }

    /// The command for a remedy; `peer` is escaped.
    private static func hint(_ remedy: ControlAPI.Remedy, _ peer: String) -> String {
        switch remedy {
        case .invite: "ask for a session first: earshot invite \(peer)"
        case .unblock: "unblock the peer first: earshot unblock \(peer)"
        case .trust: "trust the peer: earshot trust \(peer)"
        case .distrust: "revoke the trust in the peer: earshot distrust \(peer)"
        case .verify: "compare the digits first: earshot verify \(peer)"
        case .compareAgain: "compare the digits again: earshot verify \(peer); or remove the mismatch: earshot distrust \(peer)"
        case .listInvitations: "see the invitations: earshot invitations"
        case .listGroups: "see the groups: earshot group list"
        case .renewGroup: "create a new group with its members: earshot group create NAME --from GROUP"
        case .listFiles: "see the files: earshot file list"
        case .clearFiles: "fetch or delete received files: earshot file get, or earshot file delete"
        case .cancelFile: "cancel one: earshot file cancel ID"
        case .nameSender: "name the sender of the message"
        }
    }

    /// The next step after an error whose code is enough to choose it; `peer` is escaped.
    private static func hint(_ code: ControlAPI.ErrorCode, _ peer: String) -> String? {
        switch code {
        case .unknownPeer: "list the peers: earshot peers"
        case .notConnected: "ask for a session first: earshot invite \(peer)"
        case .timedOut, .unavailable: "try again later"
        case .unconfirmed: "it may have arrived: ask the receiver before you send it again"
        case .notSent: "it is safe to send it again; with --queue, the daemon sends it when the peer is available"
        case .noSpace, .inboxFull: "free some space there, then try again"
        case .invalidParameter, .unsupported, .cancelled, .ambiguousPeer, .notFound, .conflict, .forbidden, .unknownGroup, .ambiguousGroup,
            .notMember, .declined, .busy, .identityMismatch, .encryptionMismatch, .downgradeDetected, .versionUnsupported,
            .serviceMismatch, .protocolViolation, .tooLarge, .nameRejected, .digestMismatch, .sourceChanged, .invalidSource, .storage:
            nil
        }
    }
}
