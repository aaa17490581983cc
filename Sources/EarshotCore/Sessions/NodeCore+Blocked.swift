import EarshotWire
import OrderedCollections

/// Delayed answers to blocked peers, timed as if a user had given them.
struct LateAnswers: Sendable {
    struct Answer: Sendable {
        let link: LinkID
        let invitation: InvitationID
        let isToGroup: Bool
        let hold: HoldID?
    }

    private var answers: OrderedDictionary<UInt64, Answer> = [:]
    private var total: UInt64 = 0

    var count: Int { self.answers.count }

    /// Whether an answer to a session invitation is pending on that connection.
    func contains(on link: LinkID) -> Bool { self.answers.values.contains { $0.link == link && !$0.isToGroup } }

    /// Whether an answer is pending on that connection.
    func areDue(on link: LinkID) -> Bool { self.answers.values.contains { $0.link == link } }

    /// Adds an answer. Returns the number under which it is due.
    mutating func add(_ answer: Answer) -> UInt64 {
        self.total += 1
        self.answers[self.total] = answer
        return self.total
    }

    mutating func take(_ number: UInt64) -> Answer? { self.answers.removeValue(forKey: number) }
}

/// Blocked peers: they receive the answers of a rejected peer, and no event mentions them.
extension NodeCore {
    mutating func mute(_ current: LinkState.Current) {
        let id = current.facts.peer.id
        self.records[id]?.link.proven()
        if self.records[id]?.standing.noteProven() == true { self.keepPeer(id) }
        self.closeMutedLinks(of: id)
        self.links.mute(current)
        self.set(.idle(current.id), after: EarshotLimits.idleConnectionTime)
        self.closeExcessLinks()
    }

    /// Mutes the connection of a peer that is now blocked, without telling the peer. The connection closes a moment later, when pending
    /// answers have been sent: while it is open, the other members of a group would take this machine for connected.
    mutating func muteLink(of id: PeerID) {
        guard let current = self.records[id]?.link.current else { return }
        self.records[id]?.link.drop(isBeingReplaced: false)
        self.records[id]?.session.detach()
        self.renewTies(with: id)
        self.links.mute(current)
        self.set(.idle(current.id), after: EarshotLimits.blockedConnectionTime)
    }

    /// Closes the connections of a blocked peer. The peer dials again when it has something to send.
    mutating func closeMutedLinks(of id: PeerID) {
        for link in self.links.removeMuted(of: id) { self.emit(.close(link, nil)) }
    }

    /// Handles a blocked peer's frame. Invitations are declined after a while, as a user would; a session is reported as ended; other
    /// frames are ignored.
    mutating func frameCame(_ frame: Frame, onMuted link: LinkID, _ facts: LinkFacts) {
        switch frame {
        case .invite(let invite):
            // A blocked peer that invites too often gets the same answer as any other.
            guard self.strangers.invitations.rate.admit(facts.peer.id, from: facts.origin, at: self.now.monotonic) else {
                return self.send(.inviteAnswer(InviteAnswer(id: invite.id, decision: .busy)), on: link)
            }
            self.declineLater(invite.id, on: link)
        case .group(.invite(let invite)):
            guard self.strangers.invitations.rate.admit(facts.peer.id, from: facts.origin, at: self.now.monotonic) else {
                return self.answerGroup(invite.id, .busy, on: link)
            }
            self.declineLater(invite.id, isToGroup: true, on: link)
        case .sessionResume(let session): self.send(.sessionEnd(session), on: link)
        case .message(let message):
            guard message.mode != .unreliable else { return }
            self.send(.messageReceipts([MessageReceipt(id: message.id, outcome: .refused)]), on: link)
        case .resource(.offer(let offer)):
            let refusal = Refusal(code: .notConnected, explanation: "")
            self.send(.resource(.refuse(ResourceRefuse(id: offer.id, refusal: refusal))), on: link)
        case .stream(.open(let open)):
            let refusal = Refusal(code: .notConnected, explanation: "")
            self.send(.stream(.refuse(StreamRefuse(id: open.id, refusal: refusal))), on: link)
        case .hello, .proof, .refusal, .ping, .pong, .goodbye, .inviteAnswer, .inviteWithdraw, .sessionEnd, .messageReceipts,
            .resource, .stream, .dataTicket, .dataUnavailable, .dataAttach, .verification, .group:
            break
        }
    }

    /// Declines an invitation after a delay, like a user's rejection. No event is published.
    mutating func declineLater(_ id: InvitationID, isToGroup: Bool = false, on link: LinkID) {
        let delay = Int64.random(in: EarshotLimits.blockedAnswerMilliseconds, using: &self.random)
        let hold = self.hold(EarshotLimits.blockedAnswerCharge)
        let number = self.lateAnswers.add(LateAnswers.Answer(link: link, invitation: id, isToGroup: isToGroup, hold: hold))
        self.set(.lateAnswer(number), after: .milliseconds(delay))
    }

    mutating func giveLateAnswer(_ number: UInt64) {
        guard let answer = self.lateAnswers.take(number) else { return }
        // A peer that has gone waits for nothing, and one that has returned has asked again.
        if let peer = self.links.peer(of: answer.link), self.isMuted(answer.link) || self.isCurrent(answer.link, of: peer) {
            if answer.isToGroup {
                self.answerGroup(answer.invitation, .declined, on: answer.link)
            } else {
                self.send(.inviteAnswer(InviteAnswer(id: answer.invitation, decision: .declined)), on: answer.link)
                // An invitation of this side may have waited for that.
                self.sendInvitation(to: peer)
            }
        }
        self.release(answer.hold)
    }
}
