import EarshotWire
import Foundation
import NIOCore
import Testing

/// Repeated offers and streams of a member: they are cheap to send, and must cost others next to nothing.
extension HostileTests {
    @Suite struct Offers {
        /// The frames that a member sends repeatedly.
        private enum Flood: String, CaseIterable {
            case offers = "offers and cancels"
            case streams = "streams opened and aborted"
            case unanswerable = "offers of what has no room"

            func frames(in session: SessionID) throws -> [Frame] {
                let refusal = Refusal(code: .cancelled)
                switch self {
                case .offers:
                    let id = ResourceID.random()
                    return [
                        .resource(.offer(ResourceOffer(session: session, id: id, kind: .file, size: 1 << 20, name: "x"))),
                        .resource(.cancel(ResourceRefuse(id: id, refusal: refusal))),
                    ]
                case .streams:
                    let id = StreamID.random()
                    return [
                        .stream(.open(StreamOpen(session: session, id: id, name: try StreamName("x")))),
                        .stream(.abort(StreamRefuse(id: id, refusal: refusal))),
                    ]
                case .unanswerable:
                    let size = UInt64(Int64.max)
                    return [.resource(.offer(ResourceOffer(session: session, id: .random(), kind: .file, size: size, name: "x")))]
                }
            }
        }

        @Test("offers and streams that come and go: 20,000 of each, of files that are taken at once or by a person")
        func comingAndGoing() throws {
            for accept in ["session", "ask"] {
                let daemon = try VictimDaemon(settings: "[invitations]\nfrom_unknown = accept\n[resources]\naccept = \(accept)\n")
                for (number, flood) in Flood.allCases.enumerated() {
                    try self.strike(daemon, flood, from: "127.8.\(number).1", "\(flood.rawValue), accept = \(accept)")
                }
            }
        }

        private func strike(_ daemon: VictimDaemon, _ flood: Flood, from address: String, _ name: String) throws {
            let live = try LiveSession(with: daemon, from: address.replacingOccurrences(of: "127.8", with: "127.9"))
            for _ in 0..<20 { _ = try live.message() }
            let member = try WirePeer(port: daemon.port, name: "member", from: address).prove()
            let session = try member.join()
            let (memory, processor) = (daemon.memory, daemon.processorTime)
            var peak = memory
            var times: [Double] = []
            let (count, rounds) = (Scale.of(20_000), 100)
            for _ in 0..<rounds {
                var bytes = ByteBuffer()
                for _ in 0..<count / rounds {
                    for frame in try flood.frames(in: session) { try FrameEncoder.encode(frame, into: &bytes) }
                }
                #expect(member.socket.send(Array(bytes.readableBytesView)))
                times.append(try live.message())
                peak = max(peak, daemon.memory)
            }
            try member.roundTrip()
            times.sort()
            let (median, worst) = (times[rounds / 2], times[rounds * 99 / 100])
            #expect((Scale.isFull ? worst : median) < 250, "\(name): acknowledged in \(median) ms, 99 % within \(worst) ms")
            #expect(peak - memory < 64 << 20, "\(name): memory grew from \(memory) to \(peak)")
            #expect(daemon.isAlive, "the same process")
            print(
                "measured: \(name): \(count) times, a friend's message on disk in \(median) ms, 99 % within \(worst) ms,"
                    + " memory +\((peak - memory) >> 10) KiB, \(daemon.processorTime - processor) s of processor time")
        }
    }
}
