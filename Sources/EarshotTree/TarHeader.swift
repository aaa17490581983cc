/// The headers of a tar archive (POSIX.1-2001, pax Interchange Format).
enum TarHeader {
    /// The size of a block, in bytes.
    static let block = 512

    /// Returns the number of zero bytes that follow content of that length.
    static func padding(_ length: UInt64) -> Int { (Self.block - Int(length % UInt64(Self.block))) % Self.block }

    /// Appends an entry's headers, and the map of its data if it has holes. Returns the map's length, which counts as content.
    static func append(_ entry: TreeEntry, path: [UInt8], to bytes: inout [UInt8]) -> Int {
        var records: [UInt8] = []
        var map: [UInt8] = []
        var (name, target) = (path, [UInt8]())
        var size = entry.dataLength ?? 0
        let kind: UInt8
        switch entry.content {
        case .directory:
            kind = UInt8(ascii: "5")
            name.append(UInt8(ascii: "/"))
        case .link(let to): (kind, target) = (UInt8(ascii: "2"), to)
        case .file: kind = UInt8(ascii: "0")
        case .sparse(let real, let extents):
            kind = UInt8(ascii: "0")
            map = Self.map(extents, size: real)
            size += UInt64(map.count)
            for (key, value) in [("major", "1"), ("minor", "0"), ("realsize", "\(real)")] {
                Self.append("GNU.sparse.\(key)", Array(value.utf8), to: &records)
            }
            // Without this record, the archive's member keeps its own name.
            if Self.isText(path) {
                Self.append("GNU.sparse.name", path, to: &records)
                name = Array("GNUSparseFile.0/".utf8) + (path.split(separator: UInt8(ascii: "/")).last.map(Array.init) ?? [])
            }
        }
        // Extended headers hold only UTF-8. GNU tar warns about the key `hdrcharset`, which POSIX defines for other names, and libarchive
        // warns about names without it. GNU's long names are bytes, and all of these programs read them.
        for (text, key, kind) in [(name, "path", UInt8(ascii: "L")), (target, "linkpath", UInt8(ascii: "K"))] {
            let isText = Self.isText(text)
            if text.count > 100, !isText { Self.appendLong(text, kind, to: &bytes) }
            if isText, text.count > 100 || !text.allSatisfy({ $0 < 0x80 }) { Self.append(key, text, to: &records) }
        }
        if size > 0o77777777777 { Self.append("size", Array("\(size)".utf8), to: &records) }
        let time = entry.modified
        if time.nanoseconds > 0 || !(0...0o77777777777).contains(time.seconds) {
            Self.append("mtime", Array(Self.decimal(time).utf8), to: &records)
        }
        if !records.isEmpty {
            let header = Self.header(
                name: Array("PaxHeader/".utf8) + Array(name.suffix(80)), kind: UInt8(ascii: "x"), mode: 0o644,
                size: UInt64(records.count), seconds: time.seconds, target: [])
            bytes += header + records
            bytes.append(contentsOf: repeatElement(0, count: Self.padding(UInt64(records.count))))
        }
        bytes += Self.header(name: name, kind: kind, mode: entry.mode, size: size, seconds: time.seconds, target: target)
        bytes += map
        return map.count
    }

    private static func isText(_ bytes: [UInt8]) -> Bool { String(validating: bytes, as: UTF8.self) != nil }

    /// Appends GNU tar's member for the name, or the link's target, of the next member. Its content ends with a NUL.
    private static func appendLong(_ name: [UInt8], _ kind: UInt8, to bytes: inout [UInt8]) {
        let length = UInt64(name.count + 1)
        bytes += Self.header(name: Array("././@LongLink".utf8), kind: kind, mode: 0, size: length, seconds: 0, target: [])
        bytes += name
        bytes.append(contentsOf: repeatElement(0, count: 1 + Self.padding(length)))
    }

    /// Returns seconds with a fraction. Before 1970 nanoseconds still count upwards.
    private static func decimal(_ time: TreeEntry.Time) -> String {
        guard time.nanoseconds > 0 else { return "\(time.seconds)" }
        let isNegative = time.seconds < 0
        let nanoseconds = isNegative ? 1_000_000_000 - time.nanoseconds : time.nanoseconds
        let fraction = "\(nanoseconds)"
        let seconds = isNegative ? "-\((time.seconds + 1).magnitude)" : "\(time.seconds)"
        return seconds + "." + String(repeating: "0", count: 9 - fraction.count) + fraction
    }

    /// Returns the number of extents, then the offset and length of each, in decimal lines padded to whole blocks.
    private static func map(_ extents: TreeEntry.Extents, size: UInt64) -> [UInt8] {
        // An empty extent at the end marks the end of a final hole.
        let closing = extents.last.map { $0.offset + $0.length < size } ?? true
        var bytes = Array("\(extents.count + (closing ? 1 : 0))\n".utf8)
        for extent in extents { bytes += Array("\(extent.offset)\n\(extent.length)\n".utf8) }
        if closing { bytes += Array("\(size)\n0\n".utf8) }
        bytes.append(contentsOf: repeatElement(0, count: Self.padding(UInt64(bytes.count))))
        return bytes
    }

    private static func append(_ key: String, _ value: [UInt8], to records: inout [UInt8]) {
        records += Self.record(key, value)
    }

    /// `LENGTH KEY=VALUE\n`, where the length counts itself.
    private static func record(_ key: String, _ value: [UInt8]) -> [UInt8] {
        let rest = Array(" \(key)=".utf8) + value + [UInt8(ascii: "\n")]
        var length = rest.count + 1
        while String(length).utf8.count + rest.count != length { length = String(length).utf8.count + rest.count }
        return Array("\(length)".utf8) + rest
    }

    private static func header(name: [UInt8], kind: UInt8, mode: UInt16, size: UInt64, seconds: Int64, target: [UInt8]) -> [UInt8] {
        var header = [UInt8](repeating: 0, count: Self.block)
        func put(_ bytes: some Collection<UInt8>, _ offset: Int) {
            header.replaceSubrange(offset..<offset + bytes.count, with: bytes)
        }
        func octal(_ value: UInt64, _ digits: Int) -> [UInt8] {
            let text = String(value, radix: 8)
            // A value that does not fit is in the extended header before this one.
            guard text.utf8.count <= digits else { return Array(repeating: UInt8(ascii: "0"), count: digits) }
            return Array(repeating: UInt8(ascii: "0"), count: digits - text.utf8.count) + Array(text.utf8)
        }
        put(name.prefix(100), 0)
        put(octal(UInt64(mode), 7), 100)
        put(octal(0, 7), 108)
        put(octal(0, 7), 116)
        put(octal(size, 11), 124)
        put(octal(UInt64(max(seconds, 0)), 11), 136)
        put(repeatElement(UInt8(ascii: " "), count: 8), 148)
        header[156] = kind
        put(target.prefix(100), 157)
        put(Array("ustar\u{0}00".utf8), 257)
        let sum = header.reduce(0) { $0 + UInt64($1) }
        put(octal(sum, 6) + [0, UInt8(ascii: " ")], 148)
        return header
    }
}
