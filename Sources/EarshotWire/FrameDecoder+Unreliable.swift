import NIOCore

#if canImport(Glibc)
    import Glibc
#endif

/// Unreliable messages come by the hundred in one read, and each has little to say for itself: taken together they cost a fraction of what
/// as many frames do.
extension FrameDecoder {
    /// The fewest that are taken together: fewer come from ``next()``, with whatever stands between them.
    package static let shortestRun = 8
    /// The most bytes of bodies in one run. They share their storage, so that a reader that keeps one message keeps no more than this.
    package static let runBytes = 16 * 1024

    /// A run of unreliable messages, whole and of one content type, at the front of what was fed; empty where there is none.
    ///
    /// They are what ``next()`` would have given, and everything else is left to it: what is too long, cut off or against the protocol too.
    package mutating func takeUnreliable() -> [MessageFrame] {
        guard case .header = self.state, self.phase == .proven, self.partial.readableBytes == 0 else { return [] }
        let run = self.current.withUnsafeReadableBytes { UnreliableRun.first(in: $0) }
        guard let run else { return [] }
        self.current.moveReaderIndex(forwardBy: run.length)
        self.releaseIfEmpty()
        return run.messages
    }
}

/// See ``FrameDecoder/takeUnreliable()``.
private struct UnreliableRun {
    /// Where one message lies in the bytes: its payload, and in that its content type and its body.
    private struct Place {
        /// Before the content type: session, id, mode, sequence, time and the content type's length.
        static let head = 16 + 16 + 1 + 8 + 8 + 1
        static let mode = 16 + 16
        static let tail = 4

        let payload: Int
        let contentType: Range<Int>
        let body: Range<Int>

        /// The message whose header begins at `start`; `nil` where that is no whole and short unreliable message. All sums are of lengths
        /// that are checked against limits far below what an `Int` holds.
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
    /// Of all of them together, in bytes.
    let length: Int

    static func first(in bytes: UnsafeRawBufferPointer) -> UnreliableRun? {
        guard let first = Place(bytes, at: 0) else { return nil }
        let typeBytes = UnsafeRawBufferPointer(rebasing: bytes[first.contentType])
        guard let contentType = String(validating: typeBytes, as: UTF8.self), MessageFrame.isContentType(contentType) else { return nil }
        // Where it ends first: their bodies are to have one storage of their own, which nothing may be written to once it is shared.
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
