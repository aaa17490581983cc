import Foundation
import Earshot
import NIOCore
import Synchronization

extension MCSession {
    /// The maximum length of a stream's name, in bytes of UTF-8.
    static let streamNameLimit = 255

    func openStream(named streamName: String, to peerID: MCPeerID) throws -> OutputStream {
        guard (1...Self.streamNameLimit).contains(streamName.utf8.count) else {
            throw MCError(.invalidParameter, "the name of a stream has 1 to \(Self.streamNameLimit) bytes")
        }
        guard self.isConnected(peerID), let node = self.owner.engine.nodeInUse.withLock({ $0 }) else { throw MCError(.notConnected) }
        let stream = PeerOutputStream()
        let buffer = stream.buffer
        Task {
            do throws(EarshotError) {
                _ = try await node.openStream(to: peerID.id, name: streamName, body: WrittenBytes(buffer: buffer))
                buffer.end(.inOrder)
            } catch {
                buffer.end(.broken(MCError(error)))
            }
        }
        return stream
    }
}

/// The bytes that a program writes into a stream.
private struct WrittenBytes: AsyncSequence, Sendable {
    let buffer: StreamBuffer

    func makeAsyncIterator() -> Iterator { Iterator(buffer: self.buffer) }

    struct Iterator: AsyncIteratorProtocol {
        let buffer: StreamBuffer
        func next() async throws -> ByteBuffer? { try await self.buffer.next() }
    }
}

extension PeerEngine {
    /// Handles that a peer's stream waits to be accepted.
    func opened(_ stream: ByteStream) async {
        guard stream.direction == .incoming, let node = try? self.started() else { return }
        guard let (pair, session) = self.member(stream.peerID) else {
            _ = try? await node.removeStream(stream.id)
            return
        }
        guard pair.stage == .connected else {
            self.held[stream.peerID, default: []].append { await $0.opened(stream) }
            return
        }
        guard let content = try? await node.acceptStream(stream.id) else { return }
        // From the callback on, the stream belongs to the program. This function then uses only its buffer.
        nonisolated(unsafe) let input = PeerInputStream()
        let buffer = input.buffer
        // Lets an idle writer learn immediately that the reader has closed the stream.
        buffer.whenBroken { content.abandon() }
        Task {
            do throws(EarshotError) {
                while let bytes = try await content.next() {
                    guard await buffer.add(bytes) else { return content.abandon() }
                }
                // The writer learns that everything was taken only after the program has taken it.
                buffer.finish()
                await buffer.drained()
                try await content.finish()
            } catch {
                buffer.end(.broken(MCError(error)))
            }
        }
        let peer = pair.peer
        session.call(pair.token) { $1.session($0, didReceive: input, withName: stream.name, fromPeer: peer) }
    }
}

extension MCError {
    /// Creates the corresponding error of this module.
    init(_ error: EarshotError) {
        let code: Code =
            switch error.code {
            case .notConnected, .unknownPeer: .notConnected
            case .invalidParameter, .tooLarge, .invalidSource, .nameRejected: .invalidParameter
            case .unsupported: .unsupported
            case .timedOut: .timedOut
            case .cancelled: .cancelled
            default: .unavailable
            }
        self.init(code, error.message)
    }
}
