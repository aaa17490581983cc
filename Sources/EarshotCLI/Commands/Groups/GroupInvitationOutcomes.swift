import EarshotClient
import EarshotSafety

/// The outcomes of invitations to a group, one line per peer on standard error, and the worst exit status.
struct GroupInvitationOutcomes {
    let group: String
    private var statuses: [ExitStatus] = []

    init(group: String) { self.group = group }

    mutating func add(_ invitation: ControlAPI.Invitation) {
        let name = invitation.peerName.escapedForDisplay
        let reason = invitation.error.map { ": \($0.message.escapedForDisplay)" } ?? ""
        switch invitation.state {
        case .known(.accepted): Standard.note("\(name) is in \(self.group.escapedForDisplay)")
        case .known(.declined): self.fail(.denied, "\(name) declined")
        case .known(.timedOut): self.fail(.temporary, "\(name) did not answer in time\(reason)")
        case .known(.cancelled): self.fail(.failure, "the invitation to \(name) was withdrawn")
        case .known(.failed), .known(.pending), .unknown:
            self.fail(ExitStatus(code: invitation.error?.code), "the invitation to \(name) failed\(reason)")
        }
    }

    mutating func add(_ failure: CommandFailure) {
        self.fail(failure.status, failure.message ?? "an invitation failed")
        if let hint = failure.hint { Standard.say(hint) }
    }

    private mutating func fail(_ status: ExitStatus, _ words: String) {
        Standard.note(words)
        self.statuses.append(status)
    }

    /// - Throws: the worst failure, without a sentence, since all failures have been reported.
    func end() throws(CommandFailure) {
        let worst = ExitStatus.worst(self.statuses)
        guard worst == .done else { throw CommandFailure(worst, nil) }
    }
}
