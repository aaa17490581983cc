internal import Glibc
package import NIOCore

/// Collects bytes and gives them back line by line, never keeping more than the limit without a line's end.
package struct LineBuffer: Sendable {
    /// A line is longer than the limit.
    package struct LineTooLong: Error {}

    private let limit: Int
    private var bytes = ByteBuffer()
    /// How many of the bytes were already searched for the line's end.
    private var searched = 0

    /// Lines of at most `limit` bytes, without their ends.
    package init(limit: Int) {
        self.limit = limit
    }

    /// Adds what came next.
    package mutating func append(_ piece: ByteBuffer) {
        guard self.bytes.readableBytes > 0 else {
            self.bytes = piece
            return
        }
        self.bytes.discardReadBytes()
        self.bytes.writeImmutableBuffer(piece)
    }

    /// The next whole line without its end, sharing the storage of what was added; `nil` when there is none yet.
    package mutating func next() throws(LineTooLong) -> ByteBuffer? {
        let searched = self.searched
        let end = self.bytes.withUnsafeReadableBytes { bytes -> Int? in
            guard let start = bytes.baseAddress, searched < bytes.count,
                let found = memchr(start + searched, CInt(UInt8(ascii: "\n")), bytes.count - searched)
            else { return nil }
            return UnsafeRawPointer(found) - start
        }
        guard let end else {
            self.searched = self.bytes.readableBytes
            guard self.bytes.readableBytes <= self.limit else { throw LineTooLong() }
            return nil
        }
        guard end <= self.limit, var line = self.bytes.readSlice(length: end) else { throw LineTooLong() }
        self.bytes.moveReaderIndex(forwardBy: 1)
        self.searched = 0
        if line.getInteger(at: line.writerIndex - 1, as: UInt8.self) == UInt8(ascii: "\r"), line.readableBytes > 0 {
            line.moveWriterIndex(to: line.writerIndex - 1)
        }
        return line
    }

    /// What came after the last line's end.
    package mutating func rest() -> ByteBuffer? {
        defer {
            self.bytes = ByteBuffer()
            self.searched = 0
        }
        return self.bytes.readableBytes > 0 ? self.bytes : nil
    }
}
