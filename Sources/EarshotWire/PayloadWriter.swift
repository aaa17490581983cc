import NIOCore

/// Writes the fields of one frame's payload, under the same limits as ``PayloadReader``.
struct PayloadWriter {
    private let type: FrameType
    private(set) var buffer: ByteBuffer

    init(_ type: FrameType, into buffer: ByteBuffer = ByteBuffer()) {
        self.type = type
        self.buffer = buffer
    }

    /// Moves the written bytes out of the writer, which keeps no reference to them.
    mutating func giveBack(_ buffer: inout ByteBuffer) {
        swap(&self.buffer, &buffer)
    }

    func malformed(_ field: String) -> WireError { .malformed(self.type, field: field) }

    mutating func integer<Value: FixedWidthInteger>(_ value: Value) {
        self.buffer.writeInteger(value)
    }

    mutating func integer<Value: FixedWidthInteger>(_ field: String, _ value: Value, in range: ClosedRange<Value>) throws(WireError) {
        guard range.contains(value) else { throw self.malformed(field) }
        self.buffer.writeInteger(value)
    }

    mutating func identifier<Kind>(_ id: WireID<Kind>) {
        self.buffer.writeInteger(id.high)
        self.buffer.writeInteger(id.low)
    }

    mutating func length<Length: FixedWidthInteger & UnsignedInteger>(
        _ field: String, _ count: Int, as: Length.Type, in range: ClosedRange<Int>
    ) throws(WireError) {
        guard range.contains(count), let length = Length(exactly: count) else { throw self.malformed(field) }
        self.buffer.writeInteger(length)
    }

    /// Writes exactly `count` bytes, without a length.
    mutating func bytes(_ field: String, _ bytes: [UInt8], count: Int) throws(WireError) {
        guard bytes.count == count else { throw self.malformed(field) }
        self.buffer.writeBytes(bytes)
    }

    /// Writes bytes behind a u16 length.
    mutating func bytes(_ field: String, _ bytes: [UInt8], in range: ClosedRange<Int>) throws(WireError) {
        try self.length(field, bytes.count, as: UInt16.self, in: range)
        self.buffer.writeBytes(bytes)
    }

    /// Writes UTF-8 behind a length of the given width.
    mutating func text<Length: FixedWidthInteger & UnsignedInteger>(
        _ field: String, _ text: String, as: Length.Type, in range: ClosedRange<Int>
    ) throws(WireError) {
        try self.length(field, text.utf8.count, as: Length.self, in: range)
        self.buffer.writeString(text)
    }
}
