import EarshotSafety

/// SQLite's write-ahead log: committed changes that are not yet in the database, in the file beside it (section 4.1 of the format).
///
/// If its header is damaged, SQLite treats the whole file as empty, and the committed changes would be lost silently.
enum WriteAheadLog {
    /// The size of the header in bytes.
    static let headerSize = 32
    /// The first word of the header. Its lowest bit is the byte order of the words in checksums.
    private static let magic: UInt32 = 0x377F_0682

    /// Returns the name of the database's log.
    static func name(of database: String) throws(NameRejected) -> SafeName { try SafeName(database + "-wal") }

    /// Returns whether the log is missing or has a valid header. Only the header is checked, which is on disk before the rest. An
    /// incomplete end of the file is normal after a crash.
    static func isSound(_ name: SafeName, in directory: SafeDirectory) throws(FileError) -> Bool {
        guard let size = try directory.size(of: name), size > UInt64(Self.headerSize) else { return true }
        return Self.isHeader(try directory.open(name, flags: OpenFile.readWrite).bytes(at: 0, count: Self.headerSize))
    }

    /// Returns whether the bytes are a header with a matching checksum.
    static func isHeader(_ bytes: [UInt8]) -> Bool {
        guard bytes.count == Self.headerSize else { return false }
        func word(_ index: Int, isBig: Bool) -> UInt32 {
            let four = bytes[index * 4..<index * 4 + 4]
            return (isBig ? Array(four) : four.reversed()).reduce(0) { $0 << 8 | UInt32($1) }
        }
        let first = word(0, isBig: true)
        guard first & ~1 == Self.magic else { return false }
        var (one, two): (UInt32, UInt32) = (0, 0)
        for index in stride(from: 0, to: 6, by: 2) {
            one = one &+ word(index, isBig: first & 1 == 1) &+ two
            two = two &+ word(index + 1, isBig: first & 1 == 1) &+ one
        }
        return one == word(6, isBig: true) && two == word(7, isBig: true)
    }
}
