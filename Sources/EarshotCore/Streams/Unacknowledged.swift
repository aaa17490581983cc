import DequeModule
package import NIOCore

/// The bytes of a stream that were sent over a data connection and not acknowledged by the receiver, which may call them back.
///
/// The receiver's window bounds them. Small pieces are joined, so that a stream of single bytes costs little more than its bytes.
package struct Unacknowledged: Sendable {
    private static let smallPiece = 16 * 1024
    private static let joinedPiece = 64 * 1024

    private var pieces: Deque<ByteBuffer> = []
    /// The offset of the first byte, from the beginning of the stream.
    package private(set) var start: UInt64
    package private(set) var count = 0

    package init(from start: UInt64) {
        self.start = start
    }

    package mutating func append(_ bytes: ByteBuffer) {
        self.count += bytes.readableBytes
        if bytes.readableBytes <= Self.smallPiece, var last = self.pieces.popLast() {
            if last.readableBytes + bytes.readableBytes <= Self.joinedPiece {
                last.writeImmutableBuffer(bytes)
                self.pieces.append(last)
                return
            }
            self.pieces.append(last)
        }
        self.pieces.append(bytes.compacted)
    }

    /// Drops the bytes before `offset`.
    package mutating func drop(before offset: UInt64) {
        while offset > self.start, var piece = self.pieces.popFirst() {
            let dropped = Int(min(UInt64(piece.readableBytes), offset - self.start))
            piece.moveReaderIndex(forwardBy: dropped)
            self.start += UInt64(dropped)
            self.count -= dropped
            if piece.readableBytes > 0 { self.pieces.prepend(piece) }
        }
    }

    /// Returns all bytes, in pieces of at most `limit` bytes.
    package func pieces(upTo limit: Int) -> [ByteBuffer] {
        var all: [ByteBuffer] = []
        for var piece in self.pieces {
            while let slice = piece.readSlice(length: min(piece.readableBytes, limit)), slice.readableBytes > 0 { all.append(slice) }
        }
        return all
    }
}
