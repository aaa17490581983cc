package import NIOCore

/// The two frames that follow on a data connection's `data-attach`, from the side that has the bytes.
///
/// They are no ``Frame``s: their payload is not put together, and on a control connection their numbers are unknown.
package enum DataFrame: Sendable, Hashable {
    /// So many bytes of the transfer follow, 1 to `WireLimits.dataFrame`.
    case data(count: Int)
    /// That was all that comes over this connection.
    case end

    private static let dataType: UInt8 = 0x59
    private static let endType: UInt8 = 0x5A

    /// What a header of `WireLimits.frameHeaderLength` bytes announces.
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

    /// Appends the header, which is all of the frame but the bytes themselves.
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

/// Cuts what comes on a data connection, after its `data-attach`, into runs of bytes: forwards what has arrived and puts nothing together.
package struct DataFrameDecoder: Sendable {
    /// What comes next.
    package enum Piece: Sendable, Hashable {
        /// The next bytes of the transfer; shares the storage of what was fed.
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

    /// Bytes of the frame under way that are still to come: the connection may be read that far without another header.
    package var remainingInFrame: Int {
        if case .data(let remaining) = self.state { remaining } else { 0 }
    }

    /// Bytes of the header under way that are still to come, where no frame is.
    package var missingInHeader: Int { WireLimits.frameHeaderLength - self.header.readableBytes }

    /// Takes what the connection gave.
    package mutating func feed(_ buffer: ByteBuffer) {
        if self.current.readableBytes == 0 {
            self.current = buffer
        } else {
            self.current.writeImmutableBuffer(buffer)
        }
    }

    /// The next bytes that have arrived, or the end; `nil` until more is fed. Bytes behind the end throw.
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

    /// So many bytes of the frame under way were taken from the connection past this decoder; at most `remainingInFrame`.
    package mutating func skip(_ count: Int) {
        guard case .data(let remaining) = self.state else { return }
        self.state = remaining > count ? .data(remaining: remaining - count) : .header
    }
}
