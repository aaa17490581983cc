import EarshotClient
import EarshotSafety

/// The text forms of the API's values. Lines are returned escaped; tables escape their cells themselves.
enum Render {
    static func peers(_ peers: [ControlAPI.Peer]) -> Table {
        Table(
            [
                .init(title: "NAME", isFlexible: true), .init(title: "ID"), .init(title: "PRESENCE"), .init(title: "STATE"),
                .init(title: "TRUST"), .init(title: "ADDRESS", isFlexible: true),
            ],
            rows: peers.map { peer in
                let more = peer.addresses.count > 1 ? " +\(peer.addresses.count - 1)" : ""
                return [
                    peer.displayName.map { "\(peer.name) (\($0))" } ?? peer.name, Words.short(peer.id), peer.presence.rawValue,
                    peer.kind == .known(.localsend) ? "localsend" : Self.state(peer.state, peer.protection), peer.trust.rawValue,
                    peer.addresses.first.map { $0 + more } ?? "-",
                ]
            })
    }

    /// The trust in a peer and its verification, in one line, escaped.
    static func trust(_ policy: ControlAPI.PeerPolicy) -> String {
        var words = "\(policy.peerName) (\(Words.short(policy.peerID))) is \(policy.trust.rawValue)"
        if policy.trustSource == .known(.authority) { words += " by an authority" }
        if let until = policy.trustExpiresAt { words += " until \(Words.time(until))" }
        if let verified = policy.verified { words += ", digits \(verified.rawValue)" }
        return words.escapedForDisplay + "\n"
    }

    static func decisions(_ policy: ControlAPI.PeerPolicy) -> Table {
        Table(
            [.init(title: "ACTION"), .init(title: "DECISION"), .init(title: "RULE"), .init(title: "WHY", isFlexible: true)],
            rows: policy.decisions.map { [$0.action.rawValue, $0.decision.rawValue, $0.rule, $0.reason] })
    }

    /// The reason why a peer cannot be reached, if the daemon reports one.
    static func trouble(_ peer: ControlAPI.Peer) -> String? {
        peer.error.map { error in
            let name = peer.name == peer.id.description ? Words.short(peer.id) : "\(peer.name) (\(Words.short(peer.id)))"
            return "\(name): \(error.message)".escapedForDisplay
        }
    }

    static func sessions(_ sessions: [ControlAPI.Session]) -> Table {
        Table(
            [
                .init(title: "PEER", isFlexible: true), .init(title: "PEER-ID"), .init(title: "STATE"), .init(title: "SINCE"),
                .init(title: "ID"),
            ],
            rows: sessions.flatMap { session in
                session.members.map { member in
                    [
                        member.name, Words.short(member.peerID), Self.state(member.state, member.protection), Words.time(session.createdAt),
                        Words.short(session.id),
                    ]
                }
            })
    }

    static func invitations(_ invitations: [ControlAPI.Invitation]) -> Table {
        Table(
            [
                .init(title: "PEER", isFlexible: true), .init(title: "PEER-ID"), .init(title: "DIRECTION"), .init(title: "STATE"),
                .init(title: "EXPIRES"), .init(title: "ID"), .init(title: "GROUP", isFlexible: true),
                .init(title: "CONTEXT", isFlexible: true),
            ],
            rows: invitations.map { invitation in
                [
                    invitation.peerName, Words.short(invitation.peerID), invitation.direction.rawValue, invitation.state.rawValue,
                    Words.time(invitation.expiresAt), Words.short(invitation.id),
                    invitation.group.map { Self.invited(to: $0, by: invitation) } ?? "-",
                    invitation.offer.map(Words.offer) ?? Self.context(invitation.context.bytes),
                ]
            })
    }

    /// The group of an invitation: its name, its creator, and the number of members.
    private static func invited(to group: ControlAPI.GroupLabel, by invitation: ControlAPI.Invitation) -> String {
        let creator = group.creator.map { $0 == invitation.peerID ? invitation.peerName : Words.short($0) }
        return group.name + (creator.map { " by \($0)" } ?? "") + (group.members.map { ", \(Words.count($0, "member"))" } ?? "")
    }

    static func groups(_ groups: [ControlAPI.Group]) -> Table {
        Table(
            [
                .init(title: "NAME", isFlexible: true), .init(title: "ID"), .init(title: "ROLE"), .init(title: "MEMBERS"),
                .init(title: "STATE"),
            ],
            rows: groups.map { group in
                let connected = group.members.count { $0.state == .connected }
                return [
                    group.name, group.id.description, group.role.rawValue, "\(group.members.count), \(connected) connected",
                    group.state.rawValue + (group.closed ? ", closed" : "") + (group.unprotected ? ", unprotected" : ""),
                ]
            })
    }

    /// A group in one line, escaped.
    static func groupHead(_ group: ControlAPI.Group) -> String {
        let kind = (group.closed ? ", closed" : "") + (group.unprotected ? ", unprotected" : "")
        return "\(group.name) (\(group.id)), \(group.state.rawValue)\(kind), made \(Words.time(group.createdAt))".escapedForDisplay + "\n"
    }

    static func members(of group: ControlAPI.Group) -> Table {
        let names = Dictionary(group.members.map { ($0.peerID, $0.name) }) { first, _ in first }
        return Table(
            [
                .init(title: "NAME", isFlexible: true), .init(title: "PEER-ID"), .init(title: "STATE", isFlexible: true),
                .init(title: "SINCE"), .init(title: "INVITED-BY", isFlexible: true),
            ],
            rows: group.members.map { member in
                let isCreator = member.peerID == group.creator
                return [
                    member.name, Words.short(member.peerID),
                    member.state.rawValue + (member.error.map { ": \($0.message)" } ?? ""), Words.time(member.joinedAt),
                    isCreator ? "(creator)" : names[member.invitedBy] ?? Words.short(member.invitedBy),
                ]
            })
    }

    static func resources(_ resources: [ControlAPI.Resource]) -> Table {
        Table(
            [
                .init(title: "NAME", isFlexible: true), .init(title: "SIZE"), .init(title: "STATE"), .init(title: "PROGRESS"),
                .init(title: "FROM/TO", isFlexible: true), .init(title: "ID"),
            ],
            rows: resources.map { resource in
                [
                    resource.shownName + (resource.kind == .directory ? "/" : ""), Words.size(resource.size), Self.state(resource),
                    Self.progress(resource),
                    Self.place(resource), Words.short(resource.id),
                ]
            })
    }

    /// The sender or the recipient.
    private static func place(_ resource: ControlAPI.Resource) -> String {
        (resource.direction == .incoming ? "from " : "to ") + resource.peerName + (resource.group.map { " in \($0.name)" } ?? "")
    }

    /// The progress of a transfer, and while it moves its rate and the time left.
    private static func progress(_ resource: ControlAPI.Resource) -> String {
        var text = Words.percent(resource.transferred, of: resource.size)
        guard resource.state == .transferring, resource.bytesPerSecond > 0 else { return text }
        text += ", \(Words.size(resource.bytesPerSecond))/s"
        if let left = resource.secondsLeft { text += ", \(Words.clock(Double(left))) left" }
        return text
    }

    static func streams(_ streams: [ControlAPI.Stream]) -> Table {
        Table(
            [
                .init(title: "NAME", isFlexible: true), .init(title: "FROM/TO", isFlexible: true), .init(title: "STATE"),
                .init(title: "BYTES"), .init(title: "RATE"), .init(title: "ID"),
            ],
            rows: streams.map { stream in
                [
                    stream.name, (stream.direction == .incoming ? "from " : "to ") + stream.peerName, Self.state(stream),
                    Words.size(stream.transferred),
                    stream.state == .open ? "\(Words.size(stream.bytesPerSecond))/s" : "-", Words.short(stream.id),
                ]
            })
    }

    static func status(_ status: ControlAPI.Status, socketPath: String) -> String {
        let discovery = status.discovery
        let copies = status.local?.identityCopies ?? []
        let lines: [(String, String)] = [
            ("name", status.name), ("peer id", status.peerID.description), ("version", status.version),
            ("service type", status.serviceType),
            ("encryption", status.encryption), ("addresses", status.addresses.isEmpty ? "-" : status.addresses.joined(separator: ", ")),
            ("discovery", "\(discovery.backend), \(discovery.state)" + (discovery.error.map { ": \($0)" } ?? "")),
            ("peers", "\(status.counts.peers), \(status.counts.connected) connected"), ("sessions", "\(status.counts.sessions)"),
            ("invitations", "\(status.counts.invitations) waiting"),
            ("messages", "\(status.counts.unread) unread" + (status.counts.outbox.map { ", \($0) waiting to be sent" } ?? "")),
            ("transfers", "\(status.counts.transfers) running"), ("started", Words.time(status.startedAt)), ("socket", socketPath),
        ]
        let rates = [("sending", status.local?.sendLimit), ("receiving", status.local?.receiveLimit)]
        let limited = rates.compactMap { word, rate in rate.map { "\(word) at most \(Words.size($0))/s" } }
        let limits = limited.isEmpty ? [] : [("limits", limited.joined(separator: ", "))]
        let devices = status.localSend.flatMap(Words.localSend).map { [("localsend", $0)] } ?? []
        let warning = copies.isEmpty ? [] : [("warning", "also advertised by another machine, at " + copies.joined(separator: ", "))]
        return (lines + devices + limits + warning).map { name, value in
            name + String(repeating: " ", count: 14 - name.count) + value.escapedForDisplay + "\n"
        }.joined()
    }

    /// A message with its time and sender. Further lines are indented, so that no text can look like another peer's message.
    static func message(_ message: ControlAPI.Message) -> String {
        let mark = message.mode == .unreliable ? " (unreliable)" : ""
        let place = message.group.map { " in \($0.name.escapedForDisplay)" } ?? ""
        let question = message.inReplyTo.map { " (reply to \(Words.short($0)))" } ?? ""
        let sender = message.sender.name.escapedForDisplay
        let head = "\(Words.time(message.receivedAt ?? message.sentAt)) \(sender)\(place)\(mark)\(question): "
        return head + Self.body(of: message, indent: "    ")
    }

    /// The text of a message, or a line that describes other bytes. Lines after the first are indented.
    static func body(of message: ControlAPI.Message, indent: String = "") -> String {
        guard let text = BodyCoding.text(message.body, contentType: message.contentType) else {
            return "<\(Words.count(message.size, "byte")) of \(message.contentType.escapedForDisplay)>\n"
        }
        var lines = text.escapedLines.split(separator: "\n", omittingEmptySubsequences: false)
        // `echo text | earshot send bob -` ends with a newline, which would show as an empty line.
        if lines.count > 1, lines.last == "" { lines.removeLast() }
        return lines.joined(separator: "\n\(indent)") + "\n"
    }

    /// One line for an event. `names` are peers' names by id; a peer without a name is shown by its id.
    static func event(_ event: ControlAPI.Event, names: [PeerID: String] = [:]) -> String {
        // A known one is about something; what cannot be read is unknown.
        let what = Self.subject(event, names).map { " " + $0.escapedForDisplay } ?? (event.type.known == nil ? "" : " unknown")
        return "\(Words.time(event.time)) \(event.type.rawValue.escapedForDisplay)\(what)\n"
    }

    private static func subject(_ event: ControlAPI.Event, _ names: [PeerID: String]) -> String? {
        if let peer = event.peer {
            return
                "\(peer.name) \(Words.short(peer.id)) \(peer.presence.rawValue) \(Self.state(peer.state, peer.protection)) \(peer.trust.rawValue)"
        }
        if let invitation = event.invitation {
            let context = invitation.context.bytes.isEmpty ? "" : " \(Self.context(invitation.context.bytes))"
            let offer = invitation.offer.map { " \(Words.offer($0))" } ?? ""
            return "\(Words.short(invitation.id)) \(Self.towards(invitation.direction)) \(invitation.peerName) "
                + "\(Words.short(invitation.peerID)) \(invitation.state.rawValue)"
                + (invitation.group.map { " to the group \($0.name) \(Words.short($0.id))" } ?? "") + context + offer
        }
        if let verification = event.verification {
            return "\(verification.peerName) \(Words.short(verification.peerID)) \(verification.state.rawValue)"
                + (verification.digits.map { " \($0)" } ?? "") + (verification.error.map { ": \($0.message)" } ?? "")
        }
        if let session = event.session {
            let members = session.members.map { "\($0.name) \(Words.short($0.peerID)) \(Self.state($0.state, $0.protection))" }
            return "\(Words.short(session.id)) \(members.joined(separator: ", "))\(event.ended == true ? " ended" : "")"
        }
        if let message = event.message {
            let place = message.group.map { " in \($0.name)" } ?? ""
            return
                "\(Words.short(message.id)) from \(message.sender.name)\(place) \(Words.count(message.size, "byte")) of \(message.contentType)"
        }
        if let recipient = event.recipient {
            let peer = names[recipient.peerID].map { "\($0) " } ?? ""
            return "\(event.messageID.map(Words.short) ?? "?") to \(peer)\(Words.short(recipient.peerID)) \(recipient.status.rawValue)"
                + (recipient.error.map { ": \($0.message)" } ?? "")
        }
        if let resource = event.resource {
            let group = resource.group.map { " in \($0.name)" } ?? ""
            return "\(Words.short(resource.id)) \(Self.towards(resource.direction)) \(resource.peerName)\(group) \(resource.shownName) "
                + "\(Self.progress(resource)) of \(Words.size(resource.size)) \(Self.state(resource))"
        }
        if let stream = event.stream {
            return "\(Words.short(stream.id)) \(Self.towards(stream.direction)) \(stream.peerName) \(stream.name) "
                + "\(Words.size(stream.transferred)) \(Self.state(stream))"
        }
        if let group = event.group {
            let connected = group.members.count { $0.state == .connected }
            return "\(group.name) \(Words.short(group.id)) \(group.state.rawValue), \(Words.count(group.members.count, "member")), "
                + "\(connected) connected"
        }
        if let group = event.groupID { return "\(Words.short(group)) \(event.reason ?? "left")" }
        if let discovery = event.discovery {
            return "\(discovery.backend) \(discovery.state)" + (discovery.error.map { ": \($0)" } ?? "")
        }
        if let changed = event.changed {
            let waiting = event.needsRestart ?? []
            let applied = changed.filter { !waiting.contains($0) }
            return (applied.isEmpty ? "nothing changed" : "changed: \(applied.joined(separator: ", "))")
                + (waiting.isEmpty ? "" : "; after a restart: \(waiting.joined(separator: ", "))")
        }
        if let from = event.from, let to = event.to {
            return to == 0 ? "events of an earlier run of the daemon may have been missed" : "events \(from) to \(to) were missed"
        }
        return nil
    }

    private static func towards(_ direction: Tolerant<ControlAPI.Direction>) -> String { direction == .incoming ? "from" : "to" }

    private static func state(_ state: Tolerant<ControlAPI.MemberState>, _ protection: Tolerant<ControlAPI.Protection>?) -> String {
        protection == .known(.unprotected) ? "\(state.rawValue), unprotected" : state.rawValue
    }

    /// The state of a transfer, in the words that all commands use.
    static func state(_ resource: ControlAPI.Resource) -> String {
        if resource.state == .completed, resource.direction == .incoming, resource.inSpool == false, resource.path == nil {
            return "fetched"
        }
        if resource.error?.code == .known(.declined) { return resource.direction == .incoming ? "refused" : "declined" }
        return resource.queued == true ? "queued" : resource.state.rawValue
    }

    private static func state(_ stream: ControlAPI.Stream) -> String {
        stream.error.map { "\(stream.state.rawValue), \($0.code)" } ?? stream.state.rawValue
    }

    /// An invitation's context: its text, or its size if it is not text.
    private static func context(_ bytes: [UInt8]) -> String {
        String(validating: bytes, as: UTF8.self) ?? "<\(Words.count(bytes.count, "byte"))>"
    }
}
