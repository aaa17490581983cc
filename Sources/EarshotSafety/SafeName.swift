/// A name that may become one component of a path: the only way in which a peer's string becomes one.
///
/// Refused are the empty name, `.` and `..`, anything with a slash, NUL or another control character, names of more than 255 bytes
/// of UTF-8 (the limit of Linux's file systems), and names in which nothing is visible. Everything else is kept byte for byte: it is
/// escaped where it is shown, not here.
package struct SafeName: Sendable, Hashable, CustomStringConvertible {
    /// The longest name, in bytes of UTF-8 (NAME_MAX).
    package static let byteLimit = 255

    /// The name as it came.
    package let description: String

    /// Accepts a name that is one harmless component.
    package init(_ text: String) throws(NameRejected) {
        // Bytes and scalars, not characters: "/" with a combining mark behind it is another Character, but the same separator.
        let bytes = text.utf8
        guard !bytes.isEmpty else { throw NameRejected(name: text, reason: "is empty") }
        guard bytes.count <= Self.byteLimit else {
            throw NameRejected(
                name: text, reason: "is \(bytes.count) bytes long, more than the \(Self.byteLimit) that a file name may have")
        }
        guard !bytes.elementsEqual(".".utf8), !bytes.elementsEqual("..".utf8) else {
            throw NameRejected(name: text, reason: "stands for a directory")
        }
        guard !bytes.contains(UInt8(ascii: "/")) else { throw NameRejected(name: text, reason: "contains a slash") }
        guard !text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else {
            throw NameRejected(name: text, reason: "contains a control character")
        }
        guard text.unicodeScalars.contains(where: { !$0.properties.isWhitespace && !$0.properties.isDefaultIgnorableCodePoint }) else {
            throw NameRejected(name: text, reason: "has nothing visible in it")
        }
        self.description = text
    }

    private init(unchecked text: String) {
        self.description = text
    }

    /// The same name with a number before its extension, such as `report (2).pdf`, shortened where needed to stay within the limit.
    ///
    /// An extension is what follows the last dot, when that is 1 to 16 bytes without a space and something stands before the dot; a `.tar`
    /// before it belongs to it.
    package func numbered(_ number: Int) -> SafeName {
        let (stem, suffix) = self.split
        let tail = " (\(number))" + suffix
        var kept = stem
        while kept.utf8.count + tail.utf8.count > Self.byteLimit, !kept.unicodeScalars.isEmpty {
            kept.unicodeScalars.removeLast()
        }
        return SafeName(unchecked: String(kept) + tail)
    }

    private var split: (stem: Substring, suffix: Substring) {
        let scalars = self.description.unicodeScalars
        guard let dot = scalars.lastIndex(of: "."), dot != scalars.startIndex else { return (self.description[...], "") }
        let suffix = self.description[dot...]
        guard (2...17).contains(suffix.utf8.count), !suffix.utf8.contains(UInt8(ascii: " ")) else { return (self.description[...], "") }
        let stem = self.description[..<dot]
        guard stem.utf8.count > 4, stem.suffix(4).lowercased() == ".tar", let tar = stem.unicodeScalars.lastIndex(of: ".") else {
            return (stem, suffix)
        }
        return (stem[..<tar], self.description[tar...])
    }

    /// Names are the same when their bytes are; Swift's own strings would also take canonically equivalent ones for equal.
    package static func == (lhs: SafeName, rhs: SafeName) -> Bool {
        lhs.description.utf8.elementsEqual(rhs.description.utf8)
    }

    /// Hashes the bytes.
    package func hash(into hasher: inout Hasher) {
        for byte in self.description.utf8 { hasher.combine(byte) }
    }
}

/// Why a name may not become part of a path: the API's `name-rejected`.
package struct NameRejected: Error, Sendable, Hashable, CustomStringConvertible {
    /// The name as it came: escape it wherever it is shown.
    package let name: String
    /// What is wrong with it, as the end of a sentence that begins with the name.
    package let reason: String

    /// One lower-case sentence, fit to be shown.
    package var description: String {
        // A long name is cut: the sentence must stay readable, and its reason says the length.
        let shown =
            self.name.unicodeScalars.count > 80 ? String(String.UnicodeScalarView(self.name.unicodeScalars.prefix(80))) + "..." : self.name
        return "the name \"\(shown.escapedForDisplay)\" \(self.reason); ask the sender to send it under another name"
    }
}
