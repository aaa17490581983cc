import EarshotClient
import EarshotCoding
import Foundation
import ModelLaws

/// Values of the API's models, generated from a seed: within the document's limits, and otherwise as unusual as peers can make them.
struct GeneratedModels: GeneratedValues {
    var state: UInt64

    init(seed: UInt64) { self.state = seed }

    // MARK: Parts

    mutating func word<Words: CaseIterable & RawRepresentable<String>>(_ type: Words.Type) -> Tolerant<Words> {
        .known(self.element(Array(type.allCases)))
    }

    mutating func id<Kind>() -> WireID<Kind> { WireID(high: self.number(), low: self.number()) }

    mutating func peerID() -> PeerID {
        let bytes = self.list(1...8) { UInt8(truncatingIfNeeded: $0.number()) }
        return self.flag() ? PeerID(subjectPublicKeyInfo: bytes) : PeerID(deviceCertificate: bytes)
    }

    /// A time in the API's precision, milliseconds.
    mutating func time() -> Date {
        let seconds = Double(self.number(below: 4_000_000_000))
        let date = Date(timeIntervalSince1970: self.flag() ? seconds : seconds + Double(self.number(below: 1000)) / 1000)
        return DateText.date(from: DateText.string(from: date)) ?? date
    }

    mutating func failure() -> ControlAPI.Failure {
        .init(code: self.element(["declined", "timed-out", "no-space"]), message: self.text())
    }

    // MARK: Models

    mutating func status() -> ControlAPI.Status {
        .init(
            name: self.text(), peerID: self.peerID(), version: "1.2.3", serviceType: self.element(["earshot", "a-1"]),
            encryption: self.element(["required", "optional", "none"]), addresses: self.list { $0.text() }, discovery: self.discovery(),
            counts: .init(
                peers: self.count(), connected: self.count(), sessions: self.count(), invitations: self.count(), unread: self.count(),
                transfers: self.count(), outbox: self.optional { $0.count() }), startedAt: self.time(), local: self.optional { $0.local() },
            localSend: self.optional { $0.localSend() })
    }

    mutating func localSend() -> ControlAPI.LocalSend {
        .init(
            enabled: self.flag(), port: self.optional { $0.count() }, wantedPort: self.optional { $0.count() },
            fingerprint: self.optional { $0.fingerprint() }, error: self.optional { $0.text() })
    }

    private mutating func fingerprint() -> String { String(repeating: self.element(["0A", "F7"]), count: 32) }

    mutating func local() -> ControlAPI.Local {
        .init(
            instanceName: self.optional { $0.text() }, port: self.count(), wantedPort: self.count(), stateDirectory: "/" + self.text(),
            quota: UInt64(self.count()), reserve: Double(self.count()) / 10_000,
            sendLimit: self.optional { 1024 + UInt64($0.count()) }, receiveLimit: self.optional { 1024 + UInt64($0.count()) })
    }

    mutating func discovery() -> ControlAPI.Discovery {
        .init(
            backend: self.element(["avahi", "embedded", "none"]), state: self.element(["starting", "running", "unavailable", "off"]),
            error: self.optional { $0.text() })
    }

    mutating func peer() -> ControlAPI.Peer {
        .init(
            id: self.peerID(), name: self.text(), displayName: self.optional { $0.text() },
            presence: self.word(ControlAPI.Peer.Presence.self),
            state: self.word(ControlAPI.MemberState.self), trust: self.word(ControlAPI.Trust.self),
            protection: self.optional { $0.word(ControlAPI.Protection.self) }, proven: self.flag(), addresses: self.list { $0.text() },
            discoveryInfo: self.pairs(),
            sources: self.list { $0.element(["avahi", "embedded", "configured", "incoming", "store", "localsend"]) },
            error: self.optional { $0.failure() }, trustSource: self.optional { $0.word(ControlAPI.TrustSource.self) },
            trustExpiresAt: self.optional { $0.time() }, verified: self.optional { $0.word(ControlAPI.Verified.self) },
            nameConflict: self.optional { $0.peerID() }, kind: self.optional { $0.word(ControlAPI.Peer.Kind.self) },
            fingerprint: self.optional { $0.fingerprint() }, firstSeen: self.time(), lastSeen: self.time())
    }

    mutating func trustRequest() -> ControlAPI.TrustRequest {
        .init(
            trust: self.word(ControlAPI.Trust.self), lasting: self.optional { .seconds(1 + Int64($0.number(below: 1000))) },
            expiresAt: self.optional { $0.time() })
    }

    mutating func verification() -> ControlAPI.Verification {
        .init(
            peerID: self.peerID(), peerName: self.text(), state: self.word(ControlAPI.Verification.State.self),
            digits: self.optional { $0.element(["000000", "123456"]) }, error: self.optional { $0.failure() },
            expiresAt: self.optional { $0.time() })
    }

    mutating func outboxMessage() -> ControlAPI.OutboxMessage {
        .init(
            messageID: self.id(), contentType: "text/plain", size: Int(self.number(below: 1 << 20)), recipients: [self.recipient()],
            group: self.optional { $0.groupLabel(isInvitation: false) }, inReplyTo: self.optional { $0.id() }, sentAt: self.time(),
            expiresAt: self.time())
    }

    mutating func setting() -> ControlAPI.Setting {
        .init(
            key: self.element(["peer.name", "discovery.info.room"]), value: self.text(), source: self.word(ControlAPI.Setting.Source.self),
            place: self.optional { $0.element(["/etc/earshot/earshotd.conf:3", "--name"]) }, choices: self.list { $0.text() },
            needsRestart: self.flag(), next: self.optional { $0.text() })
    }

    mutating func ping() -> ControlAPI.PeerPing {
        .init(
            peerID: self.peerID(), peerName: self.text(), connection: self.optional { $0.word(ControlAPI.PeerPing.Connection.self) },
            roundTripMilliseconds: self.optional { Double($0.number(below: 5_000)) }, steps: [self.pingStep(), self.pingStep()])
    }

    mutating func pingStep() -> ControlAPI.PeerPing.Step {
        .init(
            step: self.word(ControlAPI.PeerPing.Step.Kind.self), state: self.word(ControlAPI.PeerPing.Step.State.self),
            message: self.element(["connects", "no answer"]), code: self.optional { $0.element(["timed-out", "identity-mismatch"]) })
    }

    mutating func policy() -> ControlAPI.PeerPolicy {
        .init(
            peerID: self.peerID(), peerName: self.text(), trust: self.word(ControlAPI.Trust.self),
            trustSource: self.optional { $0.word(ControlAPI.TrustSource.self) }, trustExpiresAt: self.optional { $0.time() },
            verified: self.optional { $0.word(ControlAPI.Verified.self) }, decisions: self.list { $0.decision() })
    }

    mutating func decision() -> ControlAPI.PolicyDecision {
        .init(
            action: self.word(ControlAPI.PolicyDecision.Action.self), decision: self.word(ControlAPI.PolicyDecision.Outcome.self),
            rule: self.text(), reason: self.text())
    }

    mutating func invitation() -> ControlAPI.Invitation {
        .init(
            id: self.id(), direction: self.word(ControlAPI.Direction.self), peerID: self.peerID(), peerName: self.text(),
            context: Base64Bytes(self.bytes()), state: self.word(ControlAPI.Invitation.State.self), error: self.optional { $0.failure() },
            createdAt: self.time(), expiresAt: self.time(), sessionID: self.optional { $0.id() },
            group: self.optional { $0.groupLabel(isInvitation: true) }, offer: self.optional { $0.list { $0.offeredFile() } })
    }

    mutating func offeredFile() -> ControlAPI.OfferedFile {
        .init(name: self.text(), size: self.size(), contentType: self.element(["image/jpeg", "text/plain"]))
    }

    mutating func group() -> ControlAPI.Group {
        .init(
            id: self.id(), name: self.text(), creator: self.peerID(), closed: self.flag(), unprotected: self.flag(),
            state: self.word(ControlAPI.Group.State.self), role: self.word(ControlAPI.Group.Role.self),
            members: self.list { $0.groupMember() }, removalsLeft: self.optional { Int($0.number(below: 257)) }, createdAt: self.time())
    }

    mutating func groupMember() -> ControlAPI.GroupMember {
        .init(
            peerID: self.peerID(), name: self.text(), state: self.word(ControlAPI.GroupMember.State.self),
            error: self.optional { $0.failure() }, joinedAt: self.time(), invitedBy: self.peerID())
    }

    mutating func groupLabel(isInvitation: Bool = false) -> ControlAPI.GroupLabel {
        .init(
            id: self.id(), name: self.text(), creator: isInvitation ? self.peerID() : nil,
            members: isInvitation ? Int(self.number(below: 65)) : nil)
    }

    mutating func session() -> ControlAPI.Session {
        .init(
            id: self.id(),
            members: self.list {
                .init(
                    peerID: $0.peerID(), name: $0.text(), state: $0.word(ControlAPI.MemberState.self),
                    protection: $0.optional { $0.word(ControlAPI.Protection.self) })
            }, createdAt: self.time())
    }

    mutating func message() -> ControlAPI.Message {
        let isText = self.flag()
        return .init(
            id: self.id(), direction: self.word(ControlAPI.Direction.self), sender: .init(id: self.peerID(), name: self.text()),
            to: self.optional { $0.list(1...3) { $0.peerID() } }, body: isText ? Array(self.text().utf8) : self.bytes(),
            contentType: isText ? self.element(["text/plain", "TEXT/html; charset=utf-8"]) : "application/x",
            mode: self.word(ControlAPI.Message.Mode.self), sentAt: self.time(), receivedAt: self.optional { $0.time() },
            state: self.word(ControlAPI.Message.State.self), recipients: self.optional { $0.list(1...3) { $0.recipient() } },
            group: self.optional { $0.groupLabel() }, inReplyTo: self.optional { $0.id() })
    }

    mutating func recipient() -> ControlAPI.Recipient {
        .init(peerID: self.peerID(), status: self.word(ControlAPI.DeliveryStatus.self), error: self.optional { $0.failure() })
    }

    mutating func messageLineResult() -> ControlAPI.MessageLineResult {
        .init(
            line: 1 + self.number(below: 1 << 62), messageID: self.optional { $0.id() },
            recipients: self.optional { $0.list(1...3) { $0.recipient() } }, error: self.optional { $0.failure() })
    }

    mutating func resource() -> ControlAPI.Resource {
        .init(
            id: self.id(), direction: self.word(ControlAPI.Direction.self), peerID: self.peerID(), peerName: self.text(),
            name: self.text(), kind: self.word(ControlAPI.Resource.Kind.self), size: self.size(), transferred: self.size(),
            bytesPerSecond: self.size(), secondsLeft: self.optional { $0.number(below: 1_000_000_000) },
            state: self.word(ControlAPI.Resource.State.self),
            digest: self.optional { _ in "xxh3:99aa06d3014798d86001c324468d497f" }, path: self.optional { $0.text() },
            error: self.optional { $0.failure() }, createdAt: self.time(), completedAt: self.optional { $0.time() },
            inSpool: self.optional { $0.flag() }, queued: self.optional { $0.flag() },
            group: self.optional { $0.groupLabel() }, shareID: self.optional { $0.id() }, folder: self.optional { $0.text() })
    }

    mutating func resourceRequest() -> ControlAPI.ResourceRequest {
        let isToGroup = self.flag()
        return .init(
            to: isToGroup ? nil : self.list(1...3) { $0.text() }, group: isToGroup ? self.text() : nil, path: "/" + self.text(),
            queue: self.optional { $0.flag() }, digest: self.optional { $0.word(ControlAPI.Resource.Digest.self) },
            pin: self.optional { _ in "123456" })
    }

    mutating func stream() -> ControlAPI.Stream {
        .init(
            id: self.id(), direction: self.word(ControlAPI.Direction.self), peerID: self.peerID(), peerName: self.text(),
            name: self.text(), state: self.word(ControlAPI.Stream.State.self), transferred: self.size(), bytesPerSecond: self.size(),
            openedAt: self.time(), closedAt: self.optional { $0.time() }, error: self.optional { $0.failure() })
    }

    private mutating func recipients() -> ControlAPI.MessageRequest.Recipients {
        switch self.number(below: 3) {
        case 0: .all
        case 1: .group(self.text())
        default: .peers(self.list(1...3) { $0.text() })
        }
    }

    mutating func messageRequest() -> ControlAPI.MessageRequest {
        let (isText, isUnreliable) = (self.flag(), self.flag())
        return .init(
            to: self.recipients(), body: isText ? Array(self.text().utf8) : self.bytes(),
            contentType: isText ? "text/plain" : "application/x", mode: isUnreliable ? .unreliable : .reliable,
            messageID: self.optional { $0.id() }, queue: self.optional { $0.flag() && !isUnreliable },
            timeout: self.optional { .seconds(1 + Int64($0.number(below: 86_400))) }, inReplyTo: self.optional { $0.id() },
            pin: self.optional { _ in "123456" })
    }

    mutating func event() -> ControlAPI.Event {
        let kind = self.element(ControlAPI.Event.Kind.allCases)
        let start = (epoch: (self.id() as MessageID).description, seq: 1 + self.number(below: 1 << 62), time: self.time())
        func event(
            peer: ControlAPI.Peer? = nil, invitation: ControlAPI.Invitation? = nil, peerID: PeerID? = nil,
            verification: ControlAPI.Verification? = nil, session: ControlAPI.Session? = nil,
            ended: Bool? = nil, message: ControlAPI.Message? = nil, messageID: MessageID? = nil, recipient: ControlAPI.Recipient? = nil,
            resource: ControlAPI.Resource? = nil, stream: ControlAPI.Stream? = nil, discovery: ControlAPI.Discovery? = nil,
            group: ControlAPI.Group? = nil, groupID: GroupID? = nil, reason: String? = nil, changed: [String]? = nil,
            needsRestart: [String]? = nil, from: UInt64? = nil, to: UInt64? = nil
        ) -> ControlAPI.Event {
            .init(
                epoch: start.epoch, seq: start.seq, time: start.time, type: .known(kind), peer: peer, invitation: invitation,
                peerID: peerID, verification: verification, session: session, ended: ended, message: message, messageID: messageID,
                recipient: recipient, resource: resource, stream: stream, discovery: discovery, group: group, groupID: groupID,
                reason: reason, changed: changed, needsRestart: needsRestart, from: from, to: to)
        }
        switch kind {
        case .peerFound, .peerChanged, .peerLost: return event(peer: self.peer())
        case .invitationReceived, .invitationResolved: return event(invitation: self.invitation())
        case .verificationChanged:
            let verification = self.verification()
            return event(peerID: verification.peerID, verification: verification)
        case .sessionChanged: return event(session: self.session(), ended: self.flag())
        case .messageReceived: return event(message: self.message())
        case .messageStatus: return event(messageID: self.id(), recipient: self.recipient())
        case .resourceOffered, .resourceProgress, .resourceFinished: return event(resource: self.resource())
        case .streamOpened, .streamClosed: return event(stream: self.stream())
        case .discoveryChanged: return event(discovery: self.discovery())
        case .groupChanged: return event(group: self.group())
        case .groupLeft: return event(groupID: self.id(), reason: self.element(["left", "removed", "dissolved"]))
        case .settingsReloaded: return event(changed: self.list { $0.text() }, needsRestart: self.list { $0.text() })
        case .gap: return event(from: 1 + self.number(below: 1 << 62), to: 1 + self.number(below: 1 << 62))
        }
    }

    mutating func problem() -> ControlAPI.Problem {
        .init(
            type: "about:blank", title: self.text(), status: Int(400 + self.number(below: 200)), detail: self.text(),
            code: self.element(["ambiguous-peer", "not-found"]),
            candidates: self.optional { $0.list(1...3) { .init(id: $0.peerID(), name: $0.text()) } },
            remedy: self.optional { $0.word(ControlAPI.Remedy.self) })
    }
}
