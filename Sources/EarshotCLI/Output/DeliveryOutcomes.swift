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
    /// With the code of the first failure of each.
    private var statuses: [ExitStatus: String] = [:]
    /// The names of peers by their ids, as far as they are known.
    var names: [String: String] = [:]

    init(isQueued: Bool, isUnreliable: Bool) {
        self.isQueued = isQueued
        self.isUnreliable = isUnreliable
    }

    /// The names that are needed to tell of these recipients; none where all have the message.
    static func names(for recipients: [ControlAPI.Recipient], _ client: ControlClient) async -> [String: String] {
        guard recipients.contains(where: { $0.status != .delivered && $0.status != .read }) else { return [:] }
        let peers = (try? await client.peers().value.peers) ?? []
        return Dictionary(peers.map { ($0.id, $0.name) }, uniquingKeysWith: { first, _ in first })
    }

    /// A line for every recipient that does not have the message; `place` says which message, where there are many.
    mutating func add(_ messageID: String, _ recipients: [ControlAPI.Recipient], place: String = "") {
        for recipient in recipients {
            let code: Tolerant<ControlAPI.ErrorCode>?
            switch recipient.status {
            case .known(.delivered), .known(.read): continue
            case .known(.sent) where self.isUnreliable: continue
            case .known(.queued) where self.isQueued, .known(.sent) where self.isQueued:
                let peer = self.name(of: recipient)
                self.note("\(place)message \(messageID.escapedForDisplay) is queued for \(peer)")
                continue
            case .known(.unconfirmed), .known(.queued), .known(.sent): code = recipient.error?.code ?? .known(.unconfirmed)
            case .known(.failed), .unknown: code = recipient.error?.code
            }
            let reason = recipient.error?.message ?? "it was not confirmed in time and may have arrived"
            self.note("\(place)not delivered to \(self.name(of: recipient)): \(reason.escapedForDisplay)")
            if code == .known(.notConnected), self.room > 0 {
                // All of it: of a peer that is only advertised, the beginning names no peer.
                Standard.say("ask for a session first: earshot invite \(recipient.peerID.escapedForDisplay)")
            }
            self.add(ExitStatus(code: code), code?.rawValue ?? "")
        }
    }

    /// A message that was not sent at all.
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

    /// Throws where anything failed: all was said already.
    func end() throws(CommandFailure) {
        if self.untold > 0 { Standard.note("and \(self.untold) more like these") }
        let worst = ExitStatus.worst(self.statuses.keys.sorted { $0.rawValue < $1.rawValue })
        guard worst == .done else { throw CommandFailure(worst, nil, code: self.statuses[worst]) }
    }
}
