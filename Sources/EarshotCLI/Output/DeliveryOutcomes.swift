import EarshotClient
import EarshotSafety

/// The outcomes of messages for their recipients, reported on standard error, and the worst exit status.
struct DeliveryOutcomes {
    /// Whether the daemon may queue the messages.
    let isQueued: Bool
    let isUnreliable: Bool
    /// The number of outcomes that may still be reported; further ones are only counted.
    private var room = 50
    private var untold = 0
    /// The failed statuses, each with the code of its first failure.
    private var statuses: [ExitStatus: String] = [:]
    /// The known names of peers, by id.
    var names: [PeerID: String] = [:]

    init(isQueued: Bool, isUnreliable: Bool) {
        self.isQueued = isQueued
        self.isUnreliable = isUnreliable
    }

    /// The names needed to report these recipients; empty if all have the message.
    static func names(for recipients: [ControlAPI.Recipient], _ client: ControlClient) async -> [PeerID: String] {
        guard recipients.contains(where: { $0.status != .delivered && $0.status != .read }) else { return [:] }
        return (try? await client.peerNames()) ?? [:]
    }

    /// Reports every recipient that does not have the message; `place` identifies the message if there are several.
    mutating func add(_ messageID: MessageID?, _ recipients: [ControlAPI.Recipient], place: String = "") {
        for recipient in recipients {
            let code: Tolerant<ControlAPI.ErrorCode>?
            switch recipient.status {
            case .known(.delivered), .known(.read): continue
            case .known(.sent) where self.isUnreliable: continue
            case .known(.queued) where self.isQueued, .known(.sent) where self.isQueued:
                let peer = self.name(of: recipient)
                self.note("\(place)message \(messageID?.description ?? "") is queued for \(peer)")
                continue
            case .known(.unconfirmed), .known(.queued), .known(.sent): code = recipient.error?.code ?? .known(.unconfirmed)
            case .known(.failed), .unknown: code = recipient.error?.code
            }
            let reason = recipient.error?.message ?? "it was not confirmed in time and may have arrived"
            self.note("\(place)not delivered to \(self.name(of: recipient)): \(reason.escapedForDisplay)")
            if code == .known(.notConnected), recipient.peerID.kind == .earshot, self.room > 0 {
                // The whole id: for a peer that is only advertised, the beginning of the id names no peer.
                Standard.say("ask for a session first: earshot invite \(recipient.peerID)")
            }
            self.add(ExitStatus(code: code), code?.rawValue ?? "")
        }
    }

    /// Reports a message that was not sent at all.
    mutating func add(_ failure: CommandFailure, place: String) {
        self.note(place + (failure.message ?? ""))
        if let hint = failure.hint, self.room > 0 { Standard.say(hint) }
        self.add(failure.status, failure.code)
    }

    private mutating func add(_ status: ExitStatus, _ code: String) {
        if self.statuses[status] == nil { self.statuses[status] = code.isEmpty ? status.code : code.escapedForDisplay }
    }

    private func name(of recipient: ControlAPI.Recipient) -> String {
        (self.names[recipient.peerID] ?? Words.short(recipient.peerID)).escapedForDisplay
    }

    private mutating func note(_ sentence: String) {
        guard self.room > 0 else {
            self.untold += 1
            return
        }
        self.room -= 1
        Standard.note(sentence)
    }

    /// - Throws: the worst failure, without a sentence, since all failures have been reported.
    func end() throws(CommandFailure) {
        if self.untold > 0 { Standard.note("and \(self.untold) more like these") }
        let worst = ExitStatus.worst(self.statuses.keys.sorted { $0.rawValue < $1.rawValue })
        guard worst == .done else { throw CommandFailure(worst, nil, code: self.statuses[worst]) }
    }
}
