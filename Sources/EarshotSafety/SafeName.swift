/// A name that may become one component of a path. A peer's string becomes part of a path only through this type.
///
/// It refuses the empty name, `.` and `..`, names with a slash, NUL or another control character, names of more than 255 bytes of UTF-8
/// (the limit of Linux's file systems), and names without a visible character. All other names are kept byte for byte: they are escaped on
/// display, not here.
package struct SafeName: Sendable, Hashable, CustomStringConvertible {
    /// The longest name, in bytes of UTF-8 (NAME_MAX).
    package static let byteLimit = 255

    /// The name as given.
    package let description: String

    /// Creates a name, checking that it is one safe component.
    package init(_ text: String) throws(NameRejected) {
        // Checks bytes and scalars, not characters: "/" with a combining mark is another Character, but the same separator.
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

    /// Returns the name with a number before its extension, such as `report (2).pdf`, shortened if needed to stay within the limit.
    ///
    /// The extension is the part after the last dot, if that is 1 to 16 bytes without a space and the dot is not the first character. A
    /// `.tar` before it belongs to it.
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

    /// Compares names by their bytes. Swift's strings would also treat canonically equivalent ones as equal.
    package static func == (lhs: SafeName, rhs: SafeName) -> Bool {
        lhs.description.utf8.elementsEqual(rhs.description.utf8)
    }

    /// Hashes the bytes.
    package func hash(into hasher: inout Hasher) {
        for byte in self.description.utf8 { hasher.combine(byte) }
    }
}

/// The reason why a name may not become part of a path: the API's `name-rejected`.
package struct NameRejected: Error, Sendable, Hashable, CustomStringConvertible {
    /// The name, unescaped: escape it wherever it is shown.
    package let name: String
    /// The fault, as the end of a sentence that begins with the name.
    package let reason: String

    /// One lower-case sentence, safe to display.
    package var description: String {
        // A long name is shortened: the sentence must stay readable, and its reason tells the length.
        let shown =
            self.name.unicodeScalars.count > 80 ? String(String.UnicodeScalarView(self.name.unicodeScalars.prefix(80))) + "..." : self.name
        return "the name \"\(shown.escapedForDisplay)\" \(self.reason); ask the sender to send it under another name"
    }
}
