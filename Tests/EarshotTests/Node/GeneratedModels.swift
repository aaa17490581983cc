import EarshotWire
import Foundation
import ModelLaws
import NIOCore

@testable import Earshot
@testable import EarshotCore

/// Random values of the library's models, from a seed. They are within the models' limits, but otherwise as unusual as those of peers may
/// be.
struct GeneratedModels: GeneratedValues {
    var state: UInt64

    init(seed: UInt64) { self.state = seed }

    // MARK: Parts

    mutating func word<Words: CaseIterable>(_ type: Words.Type) -> Words { self.element(Array(type.allCases)) }
    mutating func id<Kind>() -> WireID<Kind> { WireID(high: self.number(), low: self.number()) }
    mutating func peerID() -> PeerID {
        let bytes = self.list(1...8) { UInt8(truncatingIfNeeded: $0.number()) }
        return self.number(below: 4) == 0 ? PeerID(deviceCertificate: bytes) : PeerID(subjectPublicKeyInfo: bytes)
    }

    /// Includes LocalSend senders without a certificate.
    mutating func senderID() -> PeerID { self.number(below: 8) == 0 ? .unprovenDevice : self.peerID() }

    /// Includes times before 1970, and the bounds of a message's time.
    mutating func time() -> WallTime {
        WallTime(
            milliseconds: self.element([
                Int64(self.number(below: 4_000_000_000_000)), -1, WireLimits.sentAtMilliseconds.lowerBound,
                WireLimits.sentAtMilliseconds.upperBound,
            ]))
    }

    mutating func code() -> EarshotError.Code? { self.optional { $0.word(EarshotError.Code.self) } }
    mutating func words() -> String? { self.optional { $0.text() } }
    mutating func failure() -> Peer.Failure { .init(code: self.word(EarshotError.Code.self), message: self.text()) }
    mutating func label() -> GroupLabel { .init(id: self.id(), name: self.text()) }

    mutating func displayName() throws -> DisplayName { try DisplayName(self.element(["bob", "née ☎️", "\u{202E}x"])) }
    mutating func serviceType() throws -> ServiceType { try ServiceType(self.element(["earshot", "a-1", "chat"])) }
    mutating func streamName() throws -> StreamName { try StreamName(self.element(["x", "a b", "\u{200B}"])) }

    mutating func configuredPeer() -> ConfiguredPeer {
        .init(
            id: self.optional { PeerID(subjectPublicKeyInfo: $0.bytes()) }, host: self.element(["10.0.0.7", "fd00::7", "bob.example"]),
            port: 1 + UInt16(self.number(below: 65_535)))
    }

    // MARK: Models

    mutating func peer() -> Peer {
        .init(
            id: self.peerID(), name: self.text(), presence: self.word(Peer.Presence.self), state: self.word(MemberState.self),
            trust: self.word(Trust.self), protection: self.optional { $0.word(Protection.self) }, proven: self.flag(),
            addresses: self.list { $0.text() }, discoveryInfo: self.pairs(), sources: self.list { $0.word(Peer.Source.self) },
            error: self.optional { $0.failure() }, trustSource: self.optional { $0.word(TrustSource.self) },
            trustEnd: self.optional { $0.time() }, verified: self.optional { $0.word(Verified.self) },
            nameConflict: self.optional { $0.peerID() }, firstSighting: self.time(), lastSign: self.time())
    }

    mutating func invitation() -> Invitation {
        var invitation = Invitation(
            id: self.id(), direction: self.word(Direction.self), peerID: self.senderID(), peerName: self.text(), context: self.bytes(),
            state: self.word(Invitation.State.self), created: self.time(), end: self.time(), sessionID: self.optional { $0.id() },
            group: self.optional { $0.invitedGroup() },
            offer: self.optional { $0.list { .init(name: $0.text(), size: $0.size(), contentType: $0.text()) } })
        invitation.error = self.code()
        invitation.errorMessage = self.words()
        return invitation
    }

    mutating func invitedGroup() -> InvitedGroup {
        .init(id: self.id(), name: self.text(), creator: self.peerID(), members: Int(self.number(below: 65)))
    }

    mutating func sessionMember() -> Session.Member {
        .init(
            peerID: self.peerID(), name: self.text(), state: self.word(MemberState.self),
            protection: self.optional { $0.word(Protection.self) })
    }

    mutating func session() -> Session { .init(id: self.id(), members: self.list { $0.sessionMember() }, created: self.time()) }

    mutating func groupMember() -> Group.Member {
        .init(
            peerID: self.peerID(), name: self.text(), state: self.word(Group.Member.State.self), error: self.optional { $0.failure() },
            joined: self.time(), invitedBy: self.peerID())
    }

    mutating func group() -> Group {
        .init(
            id: self.id(), name: self.text(), creator: self.peerID(), isClosed: self.flag(), isUnprotected: self.flag(),
            state: self.word(Group.State.self), role: self.word(Group.Role.self), members: self.list { $0.groupMember() },
            removalsLeft: self.optional { Int($0.number(below: 257)) }, created: self.time())
    }

    mutating func recipient() -> Message.Recipient {
        .init(peerID: self.peerID(), status: self.word(Message.Status.self), error: self.code(), errorMessage: self.words())
    }

    mutating func message() -> Message {
        .init(
            id: self.id(), direction: self.word(Direction.self), senderID: self.peerID(), senderName: self.text(),
            contentType: self.element(["text/plain", "x", "TEXT/html; charset=utf-8"]), body: ByteBuffer(bytes: self.bytes()),
            mode: self.word(Message.Mode.self), sent: self.time(), received: self.optional { $0.time() },
            readState: self.word(Message.ReadState.self), recipients: self.list { $0.recipient() }, group: self.optional { $0.label() },
            inReplyTo: self.optional { $0.id() })
    }

    mutating func resource() -> Resource {
        var resource = Resource(
            id: self.id(), direction: self.word(Direction.self), peerID: self.senderID(), peerName: self.text(),
            group: self.optional { $0.label() }, shareID: self.optional { $0.id() }, name: self.text(),
            folder: self.words(), kind: self.word(Resource.Kind.self), size: self.size(), transferred: self.size(),
            bytesPerSecond: self.size(),
            state: self.word(Resource.State.self), digest: self.words(), path: self.words(), error: self.code(),
            errorMessage: self.words(), created: self.time(), completed: self.optional { $0.time() }, inSpool: self.flag())
        resource.secondsLeft = self.optional { $0.size() }
        return resource
    }

    mutating func stream() -> ByteStream {
        .init(
            id: self.id(), direction: self.word(Direction.self), peerID: self.peerID(), peerName: self.text(), name: self.text(),
            state: self.word(ByteStream.State.self), transferred: self.size(), bytesPerSecond: self.size(), opened: self.time(),
            closed: self.optional { $0.time() }, error: self.code(), errorMessage: self.words())
    }

    mutating func verification() -> Verification {
        .init(
            peerID: self.peerID(), peerName: self.text(), state: self.word(Verification.State.self),
            digits: self.optional { $0.element(["000000", "123456"]) }, error: self.code(), errorMessage: self.words(),
            end: self.optional { $0.time() })
    }

    mutating func outboxMessage() -> OutboxMessage {
        .init(
            id: self.id(), contentType: self.text(), size: Int(self.number(below: 1 << 20)), recipients: self.list { $0.recipient() },
            group: self.optional { $0.label() }, inReplyTo: self.optional { $0.id() }, sent: self.time(), end: self.time())
    }

    mutating func ping() -> PeerPing {
        .init(
            peerID: self.peerID(), peerName: self.text(), connection: self.optional { $0.word(PeerPing.Connection.self) },
            roundTripNanoseconds: self.optional { Int64($0.number(below: 1 << 32)) }, steps: self.list { $0.pingStep() })
    }

    mutating func pingStep() -> PeerPing.Step {
        .init(self.word(PeerPing.Step.Kind.self), self.word(PeerPing.Step.State.self), self.text(), code: self.code())
    }

    mutating func decision() -> PolicyDecision {
        .init(
            action: self.word(PolicyDecision.Action.self), outcome: self.word(PolicyDecision.Outcome.self), rule: self.text(),
            reason: self.text())
    }

    mutating func policy() -> PeerPolicy {
        .init(
            peerID: self.peerID(), peerName: self.text(), trust: self.word(Trust.self),
            trustSource: self.optional { $0.word(TrustSource.self) }, trustExpiresAt: self.optional { $0.time().date },
            verified: self.optional { $0.word(Verified.self) }, decisions: self.list { $0.decision() })
    }

    mutating func discovery() -> DiscoveryStatus {
        .init(
            backend: self.word(DiscoveryStatus.Backend.self), state: self.word(DiscoveryStatus.State.self), error: self.words())
    }

    mutating func counts() -> NodeStatus.Counts {
        .init(
            peers: self.count(), sessions: self.count(), connections: self.count(), pendingInvitations: self.count(),
            unreadMessages: self.count(), transfers: self.count(), waitingMessages: self.count())
    }

    mutating func status() throws -> NodeStatus {
        .init(
            name: try self.displayName(), id: self.peerID(), serviceType: try self.serviceType(),
            encryption: self.word(EncryptionPreference.self), addresses: self.list { $0.text() },
            port: UInt16(self.number(below: 65_536)),
            localSend: self.optional { generated in
                .init(
                    port: generated.optional { UInt16($0.number(below: 65_536)) }, wantedPort: UInt16(generated.number(below: 65_536)),
                    fingerprint: generated.optional { $0.text() }, error: generated.optional { $0.text() })
            },
            wantedPort: UInt16(self.number(below: 65_536)), stateDirectory: self.words(),
            quota: self.size(), reserve: self.element([0, 0.05, 1, Double(self.count()) / 10_000]), sendLimit: self.optional { $0.size() },
            receiveLimit: self.optional { $0.size() }, discovery: self.discovery(),
            instanceName: self.words(), identityCopies: self.list { $0.text() }, startedAt: self.time().date, counts: self.counts())
    }

    mutating func event() -> NodeEvent {
        NodeEvent(sequence: 1 + self.number(below: 1 << 62), time: self.time().date, kind: self.eventKind())
    }

    private mutating func eventKind() -> NodeEvent.Kind {
        switch self.number(below: 18) {
        case 0: return .peerFound(self.peer())
        case 1: return .peerChanged(self.peer())
        case 2: return .peerLost(self.peer())
        case 3: return .invitationReceived(self.invitation())
        case 4: return .invitationResolved(self.invitation())
        case 5: return .verificationChanged(self.verification())
        case 6: return .sessionChanged(self.session(), ended: self.flag())
        case 7: return .messageReceived(self.message())
        case 8: return .messageStatus(self.id(), self.recipient())
        case 9: return .resourceOffered(self.resource())
        case 10: return .resourceProgress(self.resource())
        case 11: return .resourceFinished(self.resource())
        case 12: return .streamOpened(self.stream())
        case 13: return .streamClosed(self.stream())
        case 14: return .discoveryChanged(self.discovery())
        case 15: return .groupChanged(self.group())
        case 16: return .groupLeft(self.id(), self.word(GroupEnd.self))
        default:
            let first = 1 + self.number(below: 1 << 62)
            return .gap(first...(first + self.number(below: 1 << 62)))
        }
    }
}
