import EarshotClient
import Foundation
import ModelLaws
import Testing

@testable import EarshotCLI

/// The queued message that an id means.
@Suite struct OutboxCancelTests {
    private static func message(_ id: MessageID) -> ControlAPI.OutboxMessage {
        ControlAPI.OutboxMessage(messageID: id, contentType: "text/plain", size: 1, recipients: [], sentAt: nil, expiresAt: nil)
    }

    private static let waiting =
        (["1f9ee1a4-8c5f-a6ff-30a8-a1a1b7a9a4bb", "1f9ee1a4-8c5f-a6ff-30a8-a1a1b7a9a4bc", "2f9ee1a4"] as [MessageID])
        .map(Self.message)

    @Test func aWholeIDOrItsBeginning() throws {
        #expect(try OutboxCancelCommand.find("1F9EE1A4-8C5F-A6FF-30A8-A1A1B7A9A4BB", in: Self.waiting) == Self.waiting[0].messageID)
        #expect(try OutboxCancelCommand.find("2f9ee1a4", in: Self.waiting) == "2f9ee1a4")
        for text in ["2f9ee1a", "3f9ee1a4", ""] {
            #expect(throws: CommandFailure.self) { try OutboxCancelCommand.find(text, in: Self.waiting) }
        }
        let several = #expect(throws: CommandFailure.self) { try OutboxCancelCommand.find("1f9ee1a4", in: Self.waiting) }
        #expect(several?.hint?.split(separator: "\n").count == 3)
    }

    /// Reports only recipients without the message, by name if the name is known.
    @Test func theTableHasARowForEachThatWaits() {
        let message = ControlAPI.OutboxMessage(
            messageID: "1f9ee1a4-8c5f", contentType: "text/plain", size: 5,
            recipients: [
                .init(peerID: "BOB", status: .known(.queued)), .init(peerID: "CAROL", status: .known(.delivered)),
                .init(peerID: "DAVE", status: .known(.sent)),
            ], sentAt: Date(timeIntervalSince1970: 0), expiresAt: Date(timeIntervalSince1970: 1))
        let table = Render.outbox([message], names: ["BOB": "bob"])
        #expect(table.rows.map { $0[0] } == ["bob", "DAVEAAAAAAAA"] && table.rows.map { $0[1] } == ["queued", "sent"])
    }
}
