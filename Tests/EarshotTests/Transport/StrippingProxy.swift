import EarshotWire
import NIOCore
import NIOPosix
import Synchronization

@testable import Earshot

/// An attacker in the middle. It answers TLS with a plaintext refusal, like a listener with the preference `none`, and relays plaintext,
/// with the encryption preferences in the hellos changed.
final class StrippingProxy: Sendable {
    enum Lie: Sendable, CaseIterable {
        /// Relays plaintext unchanged.
        case nothing
        /// Sets the listener's hello to `none`.
        case theListenersPreference
        /// Sets the dialler's hello to `none`.
        case theDiallersPreference
        case both
    }

    private struct Seen {
        var plaintextConnections = 0
        var invitation = false
    }

    let port: UInt16
    private let listener: any Channel
    private let seen: Box<Seen>

    var plaintextConnections: Int { self.seen.value.plaintextConnections }
    var sawAnInvitation: Bool { self.seen.value.invitation }

    init(to port: UInt16, _ lie: Lie) async throws {
        let seen = Box(Seen())
        self.seen = seen
        self.listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let first = FirstByteHandler(preference: .none) { context, _ in
                        seen.withLock { $0.plaintextConnections += 1 }
                        try Self.join(context.channel, to: port, lie, seen)
                    }
                    try channel.pipeline.syncOperations.addHandler(first)
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        self.port = UInt16(self.listener.localAddress?.port ?? 0)
    }

    func stop() async { try? await self.listener.close().get() }

    private static func join(_ dialler: any Channel, to port: UInt16, _ lie: Lie, _ seen: Box<Seen>) throws {
        let there = dialler.eventLoop.makePromise(of: (any Channel).self)
        try dialler.pipeline.syncOperations.addHandler(
            Self.relay(
                to: there.futureResult, saying: lie == .theDiallersPreference || lie == .both ? EncryptionPreference.none : nil, seen))
        let preference = lie == .theListenersPreference || lie == .both ? EncryptionPreference.none : nil
        let back = dialler.eventLoop.makeSucceededFuture(dialler)
        there.completeWith(
            ClientBootstrap(group: dialler.eventLoop)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(Self.relay(to: back, saying: preference, seen))
                    }
                }
                .connect(host: "127.0.0.1", port: Int(port)))
    }

    private static func relay(
        to other: EventLoopFuture<any Channel>, saying preference: EncryptionPreference?, _ seen: Box<Seen>
    ) -> FrameRelay {
        FrameRelay(to: other) { frame in
            switch frame {
            case .hello(var hello):
                hello.encryption = preference ?? hello.encryption
                return .hello(hello)
            case .invite:
                seen.withLock { $0.invitation = true }
                return frame
            default: return frame
            }
        }
    }
}
