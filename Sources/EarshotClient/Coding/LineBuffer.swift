internal import Glibc
package import NIOCore

/// Splits bytes into lines, and never keeps more than the limit without the end of a line.
package struct LineBuffer: Sendable {
    /// A line is longer than the limit.
    package struct LineTooLong: Error {}

    private let limit: Int
    private var bytes = ByteBuffer()
    /// The number of bytes that have already been searched for the end of the line.
    private var searched = 0

    /// Creates a buffer for lines of at most `limit` bytes, without their ends.
    package init(limit: Int) {
        self.limit = limit
    }

    /// Appends bytes.
    package mutating func append(_ piece: ByteBuffer) {
        guard self.bytes.readableBytes > 0 else {
            self.bytes = piece
            return
        }
        self.bytes.discardReadBytes()
        self.bytes.writeImmutableBuffer(piece)
    }

    /// Returns the next complete line without its end, sharing the storage of the appended bytes; `nil` if there is none yet.
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

    /// Returns and removes the bytes after the last complete line.
    package mutating func rest() -> ByteBuffer? {
        defer {
            self.bytes = ByteBuffer()
            self.searched = 0
        }
        return self.bytes.readableBytes > 0 ? self.bytes : nil
    }
}
