import DequeModule
import EarshotSafety
import EarshotWire
import NIOCore

#if canImport(Glibc)
    import Glibc
#endif

/// The bytes of a descriptor as a stream's body, for one reader. The iterator blocks, and therefore needs a thread of its own.
final class StreamIntake: AsyncSequence, Sendable {
    /// The size of the largest read, in bytes.
    private static let readSize = WireLimits.streamData
    /// The number of blocks that may be in use at a time before more are allocated: as many as are usually in flight.
    private static let spareBlocks = 8

    private let input: PassedDescriptor

    init(_ input: PassedDescriptor) { self.input = input }

    func makeAsyncIterator() -> Iterator { Iterator(input: self.input) }

    struct Iterator: AsyncIteratorProtocol {
        fileprivate let input: PassedDescriptor
        private var pipe: BytePipe?
        /// The blocks of earlier reads, oldest first. A block is used again if nothing holds its bytes any more.
        private var blocks: Deque<ByteBuffer> = []

        fileprivate init(input: PassedDescriptor) { self.input = input }

        mutating func next() async throws -> ByteBuffer? {
            let input = self.input
            return try await withTaskCancellationHandler {
                try self.read()
            } onCancel: {
                input.interrupt()
            }
        }

        private mutating func read() throws -> ByteBuffer? {
            do {
                let pipe = try self.pipe ?? BytePipe()
                self.pipe = pipe
                var count: Int
                repeat {
                    guard self.input.waitForBytes() else { throw CancellationError() }
                    count = pipe.fill(from: self.input.file.descriptor, upTo: StreamIntake.readSize)
                } while count < 0 && errno == EAGAIN
                guard count != 0 else { return nil }
                var block = self.block()
                let written = block.writeWithUnsafeMutableBytes(minimumWritableBytes: Swift.max(count, 0)) { space in
                    count > 0 && pipe.drain(into: UnsafeMutableRawBufferPointer(rebasing: space[..<count])) ? count : 0
                }
                guard written > 0 else { throw FileError("read", self.input.file.subject) }
                self.blocks.append(block)
                return block
            } catch let error as FileError {
                throw EarshotError(.storage, "\(error)")
            }
        }

        private mutating func block() -> ByteBuffer {
            guard self.blocks.count >= StreamIntake.spareBlocks, var block = self.blocks.popFirst() else {
                return ByteBufferAllocator().buffer(capacity: StreamIntake.readSize)
            }
            // Allocates a new block if the old one is still in use.
            block.clear()
            return block
        }
    }
}
