import EarshotClient
import EarshotSafety

/// What became of messages at their recipients, told on standard error, and the worst exit code of all.
struct DeliveryOutcomes {
    /// Whether the messages may wait with the daemon.
    let isQueued: Bool
    let isUnreliable: Bool
    /// How many may still be told of; the rest is counted.
    private var room = 50
    private var untold = 0
    private var statuses: Set<ExitStatus> = []

    init(isQueued: Bool, isUnreliable: Bool) {
        self.isQueued = isQueued
        self.isUnreliable = isUnreliable
    }

    /// A line for every recipient that does not have the message; `place` says which message, where there are many.
    mutating func add(_ messageID: String, _ recipients: [ControlAPI.Recipient], place: String = "") {
        for recipient in recipients {
            let code: String
            switch recipient.status {
            case .known(.delivered), .known(.read): continue
            case .known(.sent) where self.isUnreliable: continue
            case .known(.queued) where self.isQueued, .known(.sent) where self.isQueued:
                let peer = Words.short(recipient.peerID).escapedForDisplay
                self.note("\(place)the message \(messageID.escapedForDisplay) waits for \(peer) with the daemon")
                continue
            case .known(.unconfirmed), .known(.queued), .known(.sent): code = recipient.error?.code ?? "unconfirmed"
            case .known(.failed), .unknown: code = recipient.error?.code ?? ""
            }
            let reason = recipient.error?.message ?? "it was not confirmed in time and may or may not have arrived"
            self.note("\(place)not delivered to \(Words.short(recipient.peerID).escapedForDisplay): \(reason.escapedForDisplay)")
            if code == "not-connected", self.room > 0, recipient.error?.message.contains("earshot ") != true {
                // All of it: of a peer that is only advertised, the beginning names no peer.
                Standard.say("ask for a session first: earshot invite \(recipient.peerID.escapedForDisplay)")
            }
            self.statuses.insert(ExitStatus(code: code))
        }
    }

    /// A message that was not sent at all.
    mutating func add(_ failure: CommandFailure, place: String) {
        self.note(place + (failure.message ?? ""))
        if let hint = failure.hint, self.room > 0 { Standard.say(hint) }
        self.statuses.insert(failure.status)
    }

    private mutating func note(_ sentence: String) {
        guard self.room > 0 else {
            self.untold += 1
            return
        }
        self.room -= 1
        Standard.note(sentence)
    }

    /// Throws where anything failed: all was said already.
    func end() throws(CommandFailure) {
        if self.untold > 0 { Standard.note("and \(self.untold) more like these") }
        let worst = ExitStatus.worst(self.statuses.sorted { $0.rawValue < $1.rawValue })
        guard worst == .done else { throw CommandFailure(worst, nil) }
    }
}
