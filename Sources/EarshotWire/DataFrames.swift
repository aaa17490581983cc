package import NIOCore

/// The two frames that follow `data-attach` on a data connection, from the side that sends the bytes.
///
/// They are not ``Frame``s: their payload is not assembled, and their numbers are unknown on a control connection.
package enum DataFrame: Sendable, Hashable {
    /// The given number of bytes of the transfer follow, 1 to `WireLimits.dataFrame`.
    case data(count: Int)
    /// The end of the bytes on this connection.
    case end

    private static let dataType: UInt8 = 0x59
    private static let endType: UInt8 = 0x5A

    /// Parses a header of `WireLimits.frameHeaderLength` bytes.
    package init(length: UInt32, type: UInt8) throws(WireError) {
        switch type {
        case Self.dataType:
            guard length > 0, length <= WireLimits.dataFrame else {
                throw .tooLong(type: type, length: length, limit: WireLimits.dataFrame)
            }
            self = .data(count: Int(length))
        case Self.endType:
            guard length == 0 else { throw .tooLong(type: type, length: length, limit: 0) }
            self = .end
        default: throw .unknownType(type)
        }
    }

    /// Appends the header, which is the whole frame except the bytes themselves.
    package func encode(into buffer: inout ByteBuffer) {
        switch self {
        case .data(let count):
            buffer.writeInteger(UInt32(clamping: min(count, WireLimits.dataFrame)))
            buffer.writeInteger(Self.dataType)
        case .end:
            buffer.writeInteger(UInt32(0))
            buffer.writeInteger(Self.endType)
        }
    }
}

/// Cuts the bytes of a data connection, after `data-attach`, into runs of content. It forwards what has arrived and assembles nothing.
package struct DataFrameDecoder: Sendable {
    /// The next item on the connection.
    package enum Piece: Sendable, Hashable {
        /// The next bytes of the transfer, sharing the storage of the fed buffer.
        case bytes(ByteBuffer)
        case end
    }

    private enum State: Hashable {
        case header
        case data(remaining: Int)
        case ended
    }

    private var state = State.header
    private var header = ByteBuffer()
    private var current = ByteBuffer()

    package init() {}

    /// The number of bytes that the current frame still lacks. The connection may be read that far without another header.
    package var remainingInFrame: Int {
        if case .data(let remaining) = self.state { remaining } else { 0 }
    }

    /// The number of bytes that the current header still lacks, outside a frame.
    package var missingInHeader: Int { WireLimits.frameHeaderLength - self.header.readableBytes }

    /// Adds bytes that were read from the connection.
    package mutating func feed(_ buffer: ByteBuffer) {
        if self.current.readableBytes == 0 {
            self.current = buffer
        } else {
            self.current.writeImmutableBuffer(buffer)
        }
    }

    /// Returns the next bytes that have arrived, or the end; `nil` until more is fed.
    /// - Throws: `afterDataEnd` for bytes after the end.
    package mutating func next() throws(WireError) -> Piece? {
        while self.current.readableBytes > 0 {
            switch self.state {
            case .header:
                let missing = WireLimits.frameHeaderLength - self.header.readableBytes
                guard var piece = self.current.readSlice(length: min(missing, self.current.readableBytes)) else { return nil }
                self.header.writeBuffer(&piece)
                guard self.header.readableBytes == WireLimits.frameHeaderLength else { continue }
                guard let length = self.header.readInteger(as: UInt32.self), let type = self.header.readInteger(as: UInt8.self) else {
                    throw .misuse
                }
                self.header.clear()
                switch try DataFrame(length: length, type: type) {
                case .data(let count): self.state = .data(remaining: count)
                case .end:
                    self.state = .ended
                    guard self.current.readableBytes == 0 else { throw .afterDataEnd }
                    self.current = ByteBuffer()
                    return .end
                }
            case .data(let remaining):
                guard let bytes = self.current.readSlice(length: min(remaining, self.current.readableBytes)) else { return nil }
                let rest = remaining - bytes.readableBytes
                self.state = rest > 0 ? .data(remaining: rest) : .header
                if self.current.readableBytes == 0 { self.current = ByteBuffer() }
                return .bytes(bytes)
            case .ended: throw .afterDataEnd
            }
        }
        return nil
    }

    /// Skips bytes of the current frame that were read from the connection without this decoder; at most `remainingInFrame`.
    package mutating func skip(_ count: Int) {
        guard case .data(let remaining) = self.state else { return }
        self.state = remaining > count ? .data(remaining: remaining - count) : .header
    }
}
