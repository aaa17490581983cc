package import NIOCore

/// Cuts the bytes of a connection, after its preamble, into frames.
///
/// The channel handler feeds each buffer that it reads and then calls ``next()`` until that returns `nil`. A frame within one buffer shares
/// its storage; a frame that spans buffers is assembled by copying. The data of a chunk or of a stream is never assembled: if it spans
/// buffers, it is returned as several `resourceChunk` frames of consecutive offsets, or several `streamData` frames, with the same meaning.
///
/// A header alone allocates nothing: only bytes that have arrived are held, and a length over the limit is refused from the header.
package struct FrameDecoder: Sendable {
    /// The limit that applies: the one for strangers, or the one for a peer that has proven its key.
    package enum Phase: Sendable, Hashable {
        case unproven
        case proven
    }

    enum State {
        case header
        case payload(FrameType, length: Int)
        case chunk(ResourceID, offset: UInt64, remaining: Int)
        case streamData(StreamID, remaining: Int)
        case skipping(remaining: Int)
        case failed(WireError)
    }

    /// The phase for headers that are not yet read. The handler sets it to `proven` between the frame that proved the peer and the next.
    package var phase: Phase = .unproven
    var state: State = .header
    /// Bytes that were fed and not yet consumed.
    var current = ByteBuffer()
    /// The beginning of an element that spans buffers.
    var partial = ByteBuffer()

    package init() {}

    /// The number of bytes that arrived and belong to no frame that ``next()`` has returned.
    package var bufferedBytes: Int { self.partial.readableBytes + self.current.readableBytes }

    /// Whether the bytes so far end between two frames. If not, the end of the connection has truncated a frame.
    package var isBetweenFrames: Bool {
        if case .header = self.state { self.bufferedBytes == 0 } else { false }
    }

    /// Adds bytes that were read from the connection.
    package mutating func feed(_ buffer: ByteBuffer) {
        if self.current.readableBytes == 0 {
            self.current = buffer
        } else {
            self.current.writeImmutableBuffer(buffer)
        }
    }

    /// Takes the bytes after the last frame for another decoder, because the connection continues with other frames.
    package mutating func takeRest() -> ByteBuffer {
        var rest = self.partial
        rest.writeImmutableBuffer(self.current)
        self.partial = ByteBuffer()
        self.current = ByteBuffer()
        return rest
    }

    /// Returns the next whole frame, or `nil` until more is fed. After an error every further call throws the same error.
    package mutating func next() throws(WireError) -> Frame? {
        do throws(WireError) {
            while true {
                switch self.state {
                case .header:
                    guard var header = self.take(WireLimits.frameHeaderLength) else { return nil }
                    self.state = try self.stateAfter(header: &header)
                case .payload(.resourceChunk, let length):
                    guard let head = self.take(ChunkHead.encodedLength) else { return nil }
                    var reader = PayloadReader(head, of: .resourceChunk)
                    let chunk = try ChunkHead(from: &reader)
                    guard chunk.count == length - ChunkHead.encodedLength else { throw WireError.malformed(.resourceChunk, field: "data") }
                    self.state = .chunk(chunk.id, offset: chunk.offset, remaining: chunk.count)
                case .payload(.streamData, let length):
                    guard let head = self.take(StreamDataHead.encodedLength) else { return nil }
                    var reader = PayloadReader(head, of: .streamData)
                    let data = try StreamDataHead(from: &reader)
                    guard data.count == length - StreamDataHead.encodedLength else { throw WireError.malformed(.streamData, field: "data") }
                    self.state = .streamData(data.id, remaining: data.count)
                case .payload(let type, let length):
                    guard let payload = self.take(length) else { return nil }
                    self.state = .header
                    return try FrameParser.parse(payload, of: type)
                case .chunk(let id, let offset, let remaining):
                    guard let data = self.takeUpTo(remaining) else { return nil }
                    let rest = remaining - data.readableBytes
                    self.state =
                        rest == 0 ? .header : .chunk(id, offset: offset + UInt64(data.readableBytes), remaining: rest)
                    return .resource(.chunk(ResourceChunk(id: id, offset: offset, data: data)))
                case .streamData(let id, let remaining):
                    guard let data = self.takeUpTo(remaining) else { return nil }
                    let rest = remaining - data.readableBytes
                    self.state = rest == 0 ? .header : .streamData(id, remaining: rest)
                    return .stream(.data(StreamData(id: id, data: data)))
                case .skipping(let remaining):
                    guard remaining > 0 else {
                        self.state = .header
                        continue
                    }
                    guard let data = self.takeUpTo(remaining) else { return nil }
                    self.state = .skipping(remaining: remaining - data.readableBytes)
                case .failed(let error):
                    throw error
                }
            }
        } catch {
            self.state = .failed(error)
            self.current = ByteBuffer()
            self.partial = ByteBuffer()
            throw error
        }
    }

    private func stateAfter(header: inout ByteBuffer) throws(WireError) -> State {
        guard let length = header.readInteger(as: UInt32.self), let number = header.readInteger(as: UInt8.self) else {
            throw .misuse
        }
        guard let type = FrameType(rawValue: number) else {
            guard number >= FrameType.firstSkippable else { throw .unknownType(number) }
            return .skipping(remaining: try self.accepted(length, of: number, limit: WireLimits.framePayload))
        }
        let accepted = try self.accepted(length, of: number, limit: type.payloadLimit)
        // A chunk's head is read separately. A payload that is too short for it must not consume bytes of the next frame.
        let head = type == .resourceChunk ? ChunkHead.encodedLength : type == .streamData ? StreamDataHead.encodedLength : -1
        guard accepted > head else { throw .malformed(type, field: "data") }
        return .payload(type, length: accepted)
    }

    private func accepted(_ length: UInt32, of number: UInt8, limit: Int) throws(WireError) -> Int {
        let phaseLimit =
            switch self.phase {
            case .proven: WireLimits.framePayload
            case .unproven: number == FrameType.hello.rawValue ? WireLimits.helloPayload : WireLimits.unprovenPayload
            }
        let limit = min(limit, phaseLimit)
        guard length <= limit else { throw .tooLong(type: number, length: length, limit: limit) }
        return Int(length)
    }

    /// Takes `count` bytes in one piece: a slice of the fed buffer if that holds them all, otherwise a copy once the last byte has arrived.
    private mutating func take(_ count: Int) -> ByteBuffer? {
        if self.partial.readableBytes == 0, let slice = self.current.readSlice(length: count) {
            self.releaseIfEmpty()
            return slice
        }
        if var piece = self.current.readSlice(length: min(count - self.partial.readableBytes, self.current.readableBytes)) {
            self.partial.writeBuffer(&piece)
            self.releaseIfEmpty()
        }
        guard self.partial.readableBytes == count else { return nil }
        let whole = self.partial
        self.partial = ByteBuffer()
        return whole
    }

    /// Takes the available bytes, at most `count`; `nil` if there are none.
    private mutating func takeUpTo(_ count: Int) -> ByteBuffer? {
        guard self.current.readableBytes > 0 else { return nil }
        let slice = self.current.readSlice(length: min(count, self.current.readableBytes))
        self.releaseIfEmpty()
        return slice
    }

    /// Releases a consumed buffer, so that an idle connection does not hold the last one it read.
    mutating func releaseIfEmpty() {
        if self.current.readableBytes == 0 {
            self.current = ByteBuffer()
        }
    }
}
