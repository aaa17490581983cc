import EarshotWire
import NIOCore
import NIOEmbedded
import Testing

@testable import Earshot

/// A listener's plaintext answer to the TLS of a dialler.
@Suite struct PlaintextAnswerTests {
    /// Records the output of the handler under test.
    private final class Hearer: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        var refusals: [WireErrorCode] = []
        var errors = 0

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if let answer = event as? PlaintextRefusal { self.refusals.append(answer.refusal.code) }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { self.errors += 1 }
    }

    /// Input after a listener's answer is dropped, because it would fill the memory until the connection is closed.
    @Test func onlyOneAnswerIsHeard() throws {
        for (frame, refusals, errors) in [
            (Frame.refusal(Refusal(code: .encryptionMismatch, explanation: "")), 1, 0), (Frame.goodbye, 0, 1),
        ] {
            let hearer = Hearer()
            let channel = EmbeddedChannel()
            try channel.pipeline.syncOperations.addHandlers(PlaintextAnswerHandler(), hearer)
            var first = ByteBuffer(bytes: WireLimits.preamble)
            try FrameEncoder.encode(frame, into: &first)
            var rest = ByteBuffer()
            for _ in 0..<100 { try FrameEncoder.encode(frame, into: &rest) }
            try channel.writeInbound(first)
            for _ in 0..<3 { try channel.writeInbound(rest) }
            #expect(hearer.refusals.count == refusals)
            #expect(hearer.errors == errors)
            _ = try channel.finish(acceptAlreadyClosed: true)
        }
    }
}
