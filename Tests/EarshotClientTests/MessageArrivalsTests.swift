import EarshotCoding
import Foundation
import ModelLaws
import Testing

@testable import EarshotClient

/// The arrivals that are pending for a slow reader of messages.
@Suite struct MessageArrivalsTests {
    private func unreliable(_ number: Int) -> MessageArrivals.Arrival {
        .unreliable(
            ControlAPI.Message(
                id: MessageID(high: 0, low: UInt64(number)), direction: .known(.incoming),
                sender: ControlAPI.Message.Sender(id: "A", name: "alice"), body: [],
                contentType: "text/plain", mode: .known(.unreliable), sentAt: Date(timeIntervalSince1970: 0), state: .known(.unread)))
    }

    @Test func aStoredMessageIsNotForgottenForUnreliableOnes() async throws {
        let (stream, continuation) = AsyncThrowingStream.makeStream(of: MessageArrivals.Arrival.self, bufferingPolicy: .bufferingNewest(3))
        MessageArrivals.tell(.stored, to: continuation)
        for number in 0..<10 { MessageArrivals.tell(self.unreliable(number), to: continuation) }
        continuation.finish()
        var looks = 0
        var numbers: [UInt64] = []
        for try await arrival in stream {
            switch arrival {
            case .stored: looks += 1
            case .unreliable(let message): numbers.append(message.id.low)
            }
        }
        #expect(looks == 1)
        #expect(numbers == [8, 9])
    }
}
