/// The encoding of an entry in a manifest (`Trees` in the protocol's specification). Integers are in network order.
extension TreeEntry {
    /// The number of an entry's kind.
    enum Kind: UInt8 {
        case directory = 1
        case file = 2
        case sparse = 3
        case link = 4
    }

    /// The fields before the name: kind, parent, the name's length.
    static let nameOffset = 6
    /// The length of the shortest entry, a root: the fields before the name, then mode and time.
    static let shortest = 20

    /// Appends the entry.
    func encode(into bytes: inout [UInt8]) {
        let kind: Kind =
            switch self.content {
            case .directory: .directory
            case .file: .file
            case .sparse: .sparse
            case .link: .link
            }
        bytes.append(kind.rawValue)
        bytes.append(integer: UInt32(clamping: self.parent))
        bytes.append(UInt8(clamping: self.name.count))
        bytes.append(contentsOf: self.name)
        bytes.append(integer: self.mode)
        bytes.append(integer: self.modified.seconds)
        bytes.append(integer: self.modified.nanoseconds)
        switch self.content {
        case .directory: break
        case .file(let size): bytes.append(integer: size)
        case .sparse(let size, let extents):
            bytes.append(integer: size)
            bytes.append(integer: UInt32(clamping: extents.count))
            bytes.append(contentsOf: extents.encoded)
        case .link(let target):
            bytes.append(integer: UInt16(clamping: target.count))
            bytes.append(contentsOf: target)
        }
    }

    /// Decodes the entry at `offset`, which is moved past it; `nil` if the bytes end early, or the kind is unknown.
    init?(_ bytes: [UInt8], at offset: inout Int) {
        let start = offset
        guard let (entry, end) = bytes.withUnsafeBytes({ Self.read($0, at: start, of: bytes) }) else { return nil }
        offset = end
        self = entry
    }

    /// Returns the entry and its end; `whole` is the array that `bytes` points to.
    private static func read(_ bytes: UnsafeRawBufferPointer, at offset: Int, of whole: [UInt8]) -> (TreeEntry, end: Int)? {
        var reader = ByteReader(bytes: bytes, offset: offset)
        guard let kind = reader.integer(UInt8.self).flatMap(Kind.init(rawValue:)), let parent = reader.integer(UInt32.self),
            let nameLength = reader.integer(UInt8.self), let name = reader.bytes(Int(nameLength)), let mode = reader.integer(UInt16.self),
            let seconds = reader.integer(Int64.self), let nanoseconds = reader.integer(UInt32.self)
        else { return nil }
        let content: Content
        switch kind {
        case .directory: content = .directory
        case .file:
            guard let size = reader.integer(UInt64.self) else { return nil }
            content = .file(size: size)
        case .sparse:
            guard let size = reader.integer(UInt64.self), let count = reader.integer(UInt32.self),
                // Checked against the available bytes.
                Int(count) <= reader.rest / Extents.width
            else { return nil }
            let end = reader.offset + Int(count) * Extents.width
            content = .sparse(size: size, Extents(encoded: whole[reader.offset..<end]))
            reader.offset = end
        case .link:
            guard let length = reader.integer(UInt16.self), let target = reader.bytes(Int(length)) else { return nil }
            content = .link(target: target)
        }
        let entry = TreeEntry(
            parent: Int(parent), name: name, mode: mode, modified: Time(seconds: seconds, nanoseconds: nanoseconds), content: content)
        return (entry, reader.offset)
    }
}

/// Reads integers in network order and runs of bytes, never past the end.
struct ByteReader {
    let bytes: UnsafeRawBufferPointer
    var offset: Int

    /// The number of bytes that are left.
    var rest: Int { self.bytes.count - self.offset }

    mutating func integer<Value: FixedWidthInteger & BitwiseCopyable>(_: Value.Type) -> Value? {
        let width = MemoryLayout<Value>.size
        guard self.rest >= width else { return nil }
        defer { self.offset += width }
        return Value(bigEndian: self.bytes.loadUnaligned(fromByteOffset: self.offset, as: Value.self))
    }

    mutating func bytes(_ count: Int) -> [UInt8]? {
        guard self.rest >= count else { return nil }
        defer { self.offset += count }
        return Array(UnsafeRawBufferPointer(rebasing: self.bytes[self.offset..<self.offset + count]))
    }
}

extension [UInt8] {
    /// Appends an integer in network order.
    mutating func append(integer value: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: value.bigEndian) { self.append(contentsOf: $0) }
    }
}
