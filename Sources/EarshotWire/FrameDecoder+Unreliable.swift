import NIOCore

#if canImport(Glibc)
    import Glibc
#endif

/// Unreliable messages often arrive by the hundred in one read, and each is small. Decoding them together costs a fraction of decoding as
/// many frames.
extension FrameDecoder {
    /// The fewest messages that are taken together. Fewer come from ``next()``, along with any other frames between them.
    package static let shortestRun = 8
    /// The most bytes of bodies in one run. The bodies share their storage, so a reader that keeps one message keeps no more than this.
    package static let runBytes = 16 * 1024

    /// Takes a run of unreliable messages, complete and of one content type, from the front of the fed bytes; empty if there is none.
    ///
    /// ``next()`` would have returned the same messages. Everything else is left to it, including frames that are too long, truncated or
    /// invalid.
    package mutating func takeUnreliable() -> [MessageFrame] {
        guard case .header = self.state, self.phase == .proven, self.partial.readableBytes == 0 else { return [] }
        let run = self.current.withUnsafeReadableBytes { UnreliableRun.first(in: $0) }
        guard let run else { return [] }
        self.current.moveReaderIndex(forwardBy: run.length)
        self.releaseIfEmpty()
        return run.messages
    }
}

/// A run of messages, see ``FrameDecoder/takeUnreliable()``.
private struct UnreliableRun {
    /// The position of one message in the bytes: its payload, and in it the content type and the body.
    private struct Place {
        /// The fields before the content type: session, id, mode, sequence, time and the content type's length.
        static let head = 16 + 16 + 1 + 8 + 8 + 1
        static let mode = 16 + 16
        static let tail = 4

        let payload: Int
        let contentType: Range<Int>
        let body: Range<Int>

        /// The message whose header begins at `start`; `nil` unless it is a complete and short unreliable message. All sums are of lengths
        /// that were checked against limits far below `Int.max`.
        init?(_ bytes: UnsafeRawBufferPointer, at start: Int) {
            let payload = start + WireLimits.frameHeaderLength
            guard bytes.count - payload >= Self.head + Self.tail, bytes[start + 4] == FrameType.message.rawValue,
                bytes[payload + Self.mode] == MessageFrame.Mode.unreliable.rawValue
            else { return nil }
            let length = UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: start, as: UInt32.self))
            guard length <= UInt32(FrameDecoder.runBytes), Int(length) <= bytes.count - payload else { return nil }
            let typeLength = Int(bytes[payload + Self.head - 1])
            let bodyStart = payload + Self.head + typeLength + Self.tail
            guard typeLength > 0, payload + Int(length) >= bodyStart else { return nil }
            let body = UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: bodyStart - Self.tail, as: UInt32.self))
            guard body <= UInt32(FrameDecoder.runBytes), bodyStart + Int(body) == payload + Int(length) else { return nil }
            self.payload = payload
            self.contentType = payload + Self.head..<payload + Self.head + typeLength
            self.body = bodyStart..<bodyStart + Int(body)
        }
    }

    let messages: [MessageFrame]
    /// The length of all messages together, in bytes.
    let length: Int

    static func first(in bytes: UnsafeRawBufferPointer) -> UnreliableRun? {
        guard let first = Place(bytes, at: 0) else { return nil }
        let typeBytes = UnsafeRawBufferPointer(rebasing: bytes[first.contentType])
        guard let contentType = String(validating: typeBytes, as: UTF8.self), MessageFrame.isContentType(contentType) else { return nil }
        // First determines the end of the run: the bodies get a common storage, which must not be written to once it is shared.
        var (count, end, bodies) = (0, 0, 0)
        while let place = Place(bytes, at: end), bodies + place.body.count <= FrameDecoder.runBytes,
            Self.equal(typeBytes, UnsafeRawBufferPointer(rebasing: bytes[place.contentType]))
        {
            count += 1
            bodies += place.body.count
            end = place.body.upperBound
        }
        guard count >= FrameDecoder.shortestRun else { return nil }
        return UnreliableRun(bytes, count: count, length: end, bodies: bodies, contentType)
    }

    private static func equal(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
        guard left.count == right.count, let one = left.baseAddress, let other = right.baseAddress else { return left.count == right.count }
        return memcmp(one, other, left.count) == 0
    }

    private init(_ bytes: UnsafeRawBufferPointer, count: Int, length: Int, bodies: Int, _ contentType: String) {
        var storage = ByteBufferAllocator().buffer(capacity: bodies)
        var start = 0
        while start < length, let place = Place(bytes, at: start) {
            storage.writeBytes(UnsafeRawBufferPointer(rebasing: bytes[place.body]))
            start = place.body.upperBound
        }
        var messages: [MessageFrame] = []
        messages.reserveCapacity(count)
        start = 0
        while start < length, let place = Place(bytes, at: start), let body = storage.readSlice(length: place.body.count) {
            func integer(_ offset: Int) -> UInt64 {
                UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: place.payload + offset, as: UInt64.self))
            }
            messages.append(
                MessageFrame(
                    session: SessionID(high: integer(0), low: integer(8)), id: MessageID(high: integer(16), low: integer(24)),
                    mode: .unreliable, sequence: integer(Place.mode + 1), sentAtMilliseconds: Int64(bitPattern: integer(Place.mode + 9)),
                    contentType: contentType, body: body))
            start = place.body.upperBound
        }
        self.messages = messages
        self.length = length
    }
}
