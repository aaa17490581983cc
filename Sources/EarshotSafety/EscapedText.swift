/// The escaping of external text (from a peer, a file name, an environment) for a terminal, a log or an error. Such text reaches them in no
/// other way.
///
/// Characters that could move the cursor, reorder the text, hide or imitate something are written as an escape: `\n`, `\t`, `\r`, `\e`, or
/// the scalar's number as in `\u{202E}`. A backslash is doubled. An escape in the output therefore always stands for a real character, and two
/// different texts never look alike because of the escaping. Nothing is dropped.
extension String {
    /// The text on one line, with everything that is not plainly visible escaped.
    package var escapedForDisplay: String {
        guard self.utf8.contains(where: { !$0.isPlain }) else { return self }
        return self.escaped(keepingLines: false)
    }

    /// The text with line feeds kept (and CR LF shown as one line feed), and everything else escaped as in `escapedForDisplay`. It is meant
    /// for bodies of messages: the caller indents further lines so that none can be forged.
    package var escapedLines: String {
        guard self.utf8.contains(where: { !$0.isPlain }) else { return self }
        return self.escaped(keepingLines: true)
    }

    /// A sentence in which names were already escaped, for the last sink before display. Unescaped characters are escaped, and a backslash
    /// stays single.
    package var escapedOnceMore: String {
        self.split(separator: "\\", omittingEmptySubsequences: false).map { String($0).escapedForDisplay }.joined(separator: "\\")
    }

    private func escaped(keepingLines: Bool) -> String {
        var result = ""
        result.reserveCapacity(self.utf8.count + 16)
        // Iterates over scalars, not characters: a combining mark must not hide the control character before it.
        var scalars = self.unicodeScalars.makeIterator()
        var pending = scalars.next()
        while let scalar = pending {
            pending = scalars.next()
            switch scalar {
            case "\n" where keepingLines: result.unicodeScalars.append(scalar)
            case "\r" where keepingLines && pending == "\n": continue
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\t": result += "\\t"
            case "\r": result += "\\r"
            case "\u{1B}": result += "\\e"
            default:
                if scalar.isShownAsItIs {
                    result.unicodeScalars.append(scalar)
                } else {
                    result += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
                }
            }
        }
        return result
    }
}

extension UInt8 {
    /// Whether the byte is printable ASCII except the backslash.
    fileprivate var isPlain: Bool { (0x20..<0x7F).contains(self) && self != UInt8(ascii: "\\") }
}

extension Unicode.Scalar {
    /// Whether the scalar shows as itself and has no other effect.
    fileprivate var isShownAsItIs: Bool {
        switch self.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .unassigned, .privateUse, .surrogate:
            return false
        default:
            // Excludes invisible fillers and joiners of other categories, except the two selectors of emoji style.
            return !self.properties.isDefaultIgnorableCodePoint || self.value == 0xFE0E || self.value == 0xFE0F
        }
    }
}
