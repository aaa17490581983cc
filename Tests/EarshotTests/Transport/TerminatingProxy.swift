import EarshotWire
import NIOCore
import NIOPosix
import NIOSSL

@testable import Earshot

/// An attacker in the middle. It talks to each side itself, over TLS with its own key or in plaintext, and relays their frames, some of
/// them changed.
final class TerminatingProxy: Sendable {
    /// Returns the frame to relay.
    typealias Rewrite = @Sendable (_ frame: Frame, _ isFromDialler: Bool) -> Frame

    let port: UInt16
    private let listener: any Channel
    private let invitations: Box<Int>

    /// The number of relayed invitations. There is none before both sides have proven their keys to each other.
    var invitationsSeen: Int { self.invitations.value }

    /// Terminates TLS as `identity`, or relays plaintext if it is `nil`.
    init(to port: UInt16, as identity: Identity?, _ rewrite: @escaping Rewrite) async throws {
        let contexts = try identity.map { try TLSContexts($0) }
        let invitations = Box(0)
        self.invitations = invitations
        @Sendable func relay(to other: EventLoopFuture<any Channel>, isFromDialler: Bool) -> FrameRelay {
            FrameRelay(to: other) { frame in
                if case .invite = frame { invitations.withLock { $0 += 1 } }
                return rewrite(frame, isFromDialler)
            }
        }
        self.listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { dialler in
                dialler.eventLoop.makeCompletedFuture {
                    let there = dialler.eventLoop.makePromise(of: (any Channel).self)
                    if let contexts { try dialler.pipeline.syncOperations.addHandler(contexts.serverHandler()) }
                    try dialler.pipeline.syncOperations.addHandler(relay(to: there.futureResult, isFromDialler: true))
                    let back = dialler.eventLoop.makeSucceededFuture(dialler)
                    there.completeWith(
                        ClientBootstrap(group: dialler.eventLoop)
                            .channelInitializer { channel in
                                channel.eventLoop.makeCompletedFuture {
                                    if let contexts { try channel.pipeline.syncOperations.addHandler(try contexts.clientHandler()) }
                                    try channel.pipeline.syncOperations.addHandler(relay(to: back, isFromDialler: false))
                                }
                            }
                            .connect(host: "127.0.0.1", port: Int(port)))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        self.port = UInt16(self.listener.localAddress?.port ?? 0)
    }

    func stop() async { try? await self.listener.close().get() }
}
