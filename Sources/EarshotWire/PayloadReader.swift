import NIOCore

/// Reads the fields of one frame's payload. Any deviation from the specification throws `WireError.malformed`.
struct PayloadReader {
    private let type: FrameType
    private var buffer: ByteBuffer

    init(_ payload: ByteBuffer, of type: FrameType) {
        self.type = type
        self.buffer = payload
    }

    func malformed(_ field: String) -> WireError { .malformed(self.type, field: field) }

    /// The number of bytes that are left.
    var rest: Int { self.buffer.readableBytes }

    /// Reads an integer in network order.
    mutating func integer<Value: FixedWidthInteger>(_ field: String, as: Value.Type = Value.self) throws(WireError) -> Value {
        guard let value = self.buffer.readInteger(as: Value.self) else { throw self.malformed(field) }
        return value
    }

    /// Reads an integer within `range`.
    mutating func integer<Value: FixedWidthInteger>(_ field: String, in range: ClosedRange<Value>) throws(WireError) -> Value {
        let value = try self.integer(field, as: Value.self)
        guard range.contains(value) else { throw self.malformed(field) }
        return value
    }

    /// Reads one byte that stands for a case.
    mutating func choice<Choice: RawRepresentable>(_ field: String, as: Choice.Type = Choice.self) throws(WireError) -> Choice
    where Choice.RawValue == UInt8 {
        guard let choice = Choice(rawValue: try self.integer(field)) else { throw self.malformed(field) }
        return choice
    }

    mutating func identifier<Kind>(_ field: String, as: WireID<Kind>.Type = WireID<Kind>.self) throws(WireError) -> WireID<Kind> {
        WireID(high: try self.integer(field), low: try self.integer(field))
    }

    /// Reads the given number of bytes, sharing storage with the payload.
    mutating func slice(_ field: String, count: Int) throws(WireError) -> ByteBuffer {
        guard let slice = self.buffer.readSlice(length: count) else { throw self.malformed(field) }
        return slice
    }

    mutating func bytes(_ field: String, count: Int) throws(WireError) -> [UInt8] {
        Array(try self.slice(field, count: count).readableBytesView)
    }

    /// Reads a length of the given width, within `range`.
    mutating func length<Length: FixedWidthInteger & UnsignedInteger>(
        _ field: String, as: Length.Type, in range: ClosedRange<Int>
    ) throws(WireError) -> Int {
        guard let length = Int(exactly: try self.integer(field, as: Length.self)), range.contains(length) else {
            throw self.malformed(field)
        }
        return length
    }

    /// Reads bytes behind a u16 length.
    mutating func bytes(_ field: String, in range: ClosedRange<Int>) throws(WireError) -> [UInt8] {
        try self.bytes(field, count: try self.length(field, as: UInt16.self, in: range))
    }

    /// Reads UTF-8 of the given length; invalid UTF-8 is refused rather than repaired.
    mutating func text(_ field: String, count: Int) throws(WireError) -> String {
        guard let text = String(validating: try self.slice(field, count: count).readableBytesView, as: UTF8.self) else {
            throw self.malformed(field)
        }
        return text
    }

    /// Checks that nothing follows the last field.
    consuming func finish() throws(WireError) {
        guard self.buffer.readableBytes == 0 else { throw self.malformed("end") }
    }
}
