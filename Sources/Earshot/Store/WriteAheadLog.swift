import EarshotSafety

/// What SQLite has committed and not yet put into the database: the file beside it, as its format's section 4.1 says.
///
/// Where its header is damaged SQLite takes the whole file for empty, and what was committed there would be lost without a word.
enum WriteAheadLog {
    /// Bytes before the first frame.
    static let headerSize = 32
    /// The header's first word; the lowest bit says in which order the bytes of words are summed.
    private static let magic: UInt32 = 0x377F_0682

    /// The journal of the database of that name.
    static func name(of database: String) throws(NameRejected) -> SafeName { try SafeName(database + "-wal") }

    /// Whether there is none, or one that begins as it should. Only the header, which is on disk before anything behind it: at the end of
    /// the file something unfinished is usual after a crash.
    static func isSound(_ name: SafeName, in directory: SafeDirectory) throws(FileError) -> Bool {
        guard let size = try directory.size(of: name), size > UInt64(Self.headerSize) else { return true }
        return Self.isHeader(try directory.open(name, flags: OpenFile.readWrite).bytes(at: 0, count: Self.headerSize))
    }

    /// Whether the bytes are a header with its own checksum.
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
