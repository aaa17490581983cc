/// An entry of systemd's journal in its native protocol: fields with names and values, as one datagram.
///
/// A value without line breaks is written as `NAME=value`; any other is preceded by its length, so that no value can introduce a field of
/// its own (systemd's "Native Journal Protocol").
struct JournalEntry: Sendable {
    /// The longest name of a field, in bytes; the journal drops fields with longer names.
    static let nameLimit = 64

    private(set) var bytes: [UInt8] = []

    /// Adds a field. Characters that the journal refuses in a name become underscores, and the name is cut at `nameLimit`.
    mutating func add(_ name: String, _ value: String) {
        self.bytes.append(contentsOf: Self.name(name).utf8)
        let value = Array(value.utf8)
        if value.contains(UInt8(ascii: "\n")) {
            self.bytes.append(UInt8(ascii: "\n"))
            withUnsafeBytes(of: UInt64(value.count).littleEndian) { self.bytes.append(contentsOf: $0) }
        } else {
            self.bytes.append(UInt8(ascii: "="))
        }
        self.bytes.append(contentsOf: value)
        self.bytes.append(UInt8(ascii: "\n"))
    }

    /// Returns a name of capitals, digits and underscores that begins with a letter: names with a leading underscore are reserved for the
    /// journal.
    private static func name(_ name: String) -> String {
        let allowed = name.uppercased().unicodeScalars.map { scalar -> Character in
            ("A"..."Z").contains(scalar) || ("0"..."9").contains(scalar) ? Character(scalar) : "_"
        }
        let trimmed = allowed.drop { !$0.isLetter }
        return trimmed.isEmpty ? "FIELD" : String(trimmed.prefix(self.nameLimit))
    }
}
