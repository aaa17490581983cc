import APIDocument
@testable import Earshot
import EarshotClient
@testable import EarshotCore
import EarshotWire
import Foundation
import NIOCore
import Testing

@testable import earshotd

/// The library and the API spell the same words: a case that one side alone has would be lost between them.
@Suite struct MappingTests {
    private func words<Words: CaseIterable & RawRepresentable<String>>(_ type: Words.Type) -> Set<String> {
        Set(type.allCases.map(\.rawValue))
    }

    @Test func theWordsAgree() {
        #expect(self.words(Trust.self) == self.words(ControlAPI.Trust.self))
        #expect(self.words(MemberState.self) == self.words(ControlAPI.MemberState.self))
        #expect(self.words(Protection.self) == self.words(ControlAPI.Protection.self))
        #expect(self.words(Direction.self) == self.words(ControlAPI.Direction.self))
        #expect(self.words(Peer.Presence.self) == self.words(ControlAPI.Peer.Presence.self))
        #expect(self.words(Invitation.State.self) == self.words(ControlAPI.Invitation.State.self))
        #expect(self.words(Invitation.Decision.self) == self.words(ControlAPI.InvitationResponse.Decision.self))
        #expect(self.words(Group.State.self) == self.words(ControlAPI.Group.State.self))
        #expect(self.words(Group.Role.self) == self.words(ControlAPI.Group.Role.self))
        #expect(self.words(Group.Member.State.self) == self.words(ControlAPI.GroupMember.State.self))
        #expect(self.words(Message.Mode.self) == self.words(ControlAPI.Message.Mode.self))
        #expect(self.words(Message.ReadState.self) == self.words(ControlAPI.Message.State.self))
        #expect(self.words(Message.Status.self) == self.words(ControlAPI.DeliveryStatus.self))
        #expect(self.words(Resource.Kind.self) == self.words(ControlAPI.Resource.Kind.self))
        #expect(self.words(ByteStream.State.self) == self.words(ControlAPI.Stream.State.self))
        #expect(self.words(PeerID.Kind.self) == self.words(ControlAPI.Peer.Kind.self))
        #expect(self.words(Resource.State.self) == self.words(ControlAPI.Resource.State.self))
    }

    private let peerID = PeerID(subjectPublicKeyInfo: [1, 2, 3])
    private let time = Date(timeIntervalSince1970: 1_000_000)

    private func message(_ direction: Direction) -> Message {
        Message(
            id: .random(), direction: direction, senderID: self.peerID, senderName: "bob", contentType: "text/plain",
            body: ByteBuffer(string: "hi"), mode: .reliable, sent: WallTime(self.time),
            received: direction == .incoming ? WallTime(self.time) : nil, readState: .unread,
            recipients: [Message.Recipient(peerID: self.peerID, status: .failed, error: .inboxFull, errorMessage: "full")])
    }

    @Test func recipientsGoWithOutgoingMessagesOnly() {
        let incoming = ControlAPI.Message(self.message(.incoming))
        #expect(incoming.to == nil && incoming.recipients == nil && incoming.body == Array("hi".utf8))
        let outgoing = ControlAPI.Message(self.message(.outgoing))
        #expect(outgoing.to == [self.peerID])
        #expect(outgoing.recipients?.first?.error == ControlAPI.Failure(code: "inbox-full", message: "full"))
    }

    @Test func aPeerKeepsEveryField() throws {
        let peer = Peer(
            id: self.peerID, name: "bob", presence: .nearby, state: .connected, trust: .trusted, protection: .encrypted, proven: true,
            addresses: ["10.0.0.7:47110"], discoveryInfo: ["room": "kitchen"], sources: [.avahi, .store],
            firstSighting: WallTime(self.time), lastSign: WallTime(self.time))
        let json = String(decoding: try ControlJSON.encode(ControlAPI.Peer(peer)), as: UTF8.self)
        #expect(
            json
                == #"{"addresses":["10.0.0.7:47110"],"discovery_info":{"room":"kitchen"},"first_seen":"1970-01-12T13:46:40.000Z","#
                + #""id":"\#(self.peerID)","kind":"earshot","last_seen":"1970-01-12T13:46:40.000Z","name":"bob","presence":"nearby","protection":"encrypted","#
                + #""proven":true,"sources":["avahi","store"],"state":"connected","trust":"trusted"}"#)
    }

    @Test func aGroupKeepsEveryField() throws {
        let (created, joined) = (Date(timeIntervalSince1970: 1_000_000), Date(timeIntervalSince1970: 2_000_000))
        let inviter = PeerID(subjectPublicKeyInfo: [4])
        let id = GroupID.random()
        let group = Group(
            id: id, name: "team", creator: inviter, isClosed: true, isUnprotected: false, state: .joining, role: .member,
            members: [
                Group.Member(
                    peerID: self.peerID, name: "bob", state: .notConnected,
                    error: Peer.Failure(code: .encryptionMismatch, message: "no TLS"),
                    joined: WallTime(joined), invitedBy: inviter)
            ], removalsLeft: 255, created: WallTime(created))
        let event = ControlAPI.Event(NodeEvent(sequence: 3, time: self.time, kind: .groupChanged(group)), epoch: "e")
        #expect(event.type == .groupChanged)
        let json = String(decoding: try ControlJSON.encode(try #require(event.group)), as: UTF8.self)
        #expect(
            json
                == #"{"closed":true,"created_at":"1970-01-12T13:46:40.000Z","creator":"\#(inviter)","id":"\#(id)","members":[{"#
                + #""error":{"code":"encryption-mismatch","message":"no TLS"},"invited_by":"\#(inviter)","#
                + #""joined_at":"1970-01-24T03:33:20.000Z","name":"bob","peer_id":"\#(self.peerID)","state":"not_connected"}],"#
                + #""name":"team","removals_left":255,"role":"member","state":"joining","unprotected":false}"#)
        let left = ControlAPI.Event(NodeEvent(sequence: 4, time: self.time, kind: .groupLeft(id, .removed)), epoch: id.description)
        #expect(left.groupID == id && left.reason == "removed")
        #expect(APIDocument.shared.faults(try ControlJSON.encode(left), as: "Event") == [])
    }

    /// Receipts that are written without the encoder equal the encoder's.
    @Test func writtenReceiptsEqualTheEncoders() throws {
        func peer(_ byte: UInt8) throws -> PeerID { try #require(PeerID(bytes: [UInt8](repeating: byte, count: 32))) }
        var writer = MessageReceiptWriter()
        let failed = EarshotError.Code.inboxFull
        for errors in [[nil], [nil, nil], [nil, failed]] {
            let recipients = try errors.enumerated().map { index, error in
                Message.Recipient(
                    peerID: try peer(UInt8(index)), status: error == nil ? .delivered : .failed, error: error,
                    errorMessage: error.map { _ in "full" })
            }
            let sent = SentMessage(id: .random(), recipients: recipients)
            let receipt = ControlAPI.MessageReceipt(
                messageID: sent.id, recipients: recipients.map(ControlAPI.Recipient.init))
            #expect(try writer.write(sent) == ByteBuffer(bytes: try ControlJSON.encode(receipt)))
        }
    }

    @Test func eventsCarryTheirPayload() throws {
        let event = NodeEvent(sequence: 7, time: self.time, kind: .messageReceived(self.message(.incoming)))
        let lines = try EventFormat.lines.buffer(ControlAPI.Event(event, epoch: "e"))
        let text = String(buffer: lines)
        #expect(text.hasPrefix(#"{"epoch":"e","message":{"#) && text.hasSuffix("\"type\":\"message.received\"}\n"))
        let gap = ControlAPI.Event(NodeEvent(sequence: 9, time: self.time, kind: .gap(3...9)), epoch: "e")
        #expect(gap.from == 3 && gap.to == 9 && gap.seq == 9 && gap.type == .gap)
        let sent = String(buffer: try EventFormat.serverSent.buffer(gap))
        #expect(sent.hasPrefix("id: e:9\nevent: gap\ndata: {") && sent.hasSuffix("}\n\n"))
        #expect(EventFormat(accept: "text/event-stream") == .serverSent)
        #expect(EventFormat(accept: "*/*") == .lines)
    }
}
