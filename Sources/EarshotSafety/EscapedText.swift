/// The one way in which text that came from elsewhere (a peer, a file name, an environment) reaches a terminal, a log or an error.
///
/// What could move the cursor, reorder what is read, hide or imitate is written as an escape: `\n`, `\t`, `\r`, `\e`, or the scalar's
/// number as in `\u{202E}`. A backslash is doubled, so that an escape in the output always stands for a character that was really
/// there, and two different texts are never shown alike because of the escaping. Nothing is dropped.
extension String {
    /// The text on one line, with everything that is not plainly visible escaped.
    package var escapedForDisplay: String {
        guard self.utf8.contains(where: { !$0.isPlain }) else { return self }
        return self.escaped(keepingLines: false)
    }

    /// The text with line feeds kept (and CR LF shown as one line feed), everything else escaped as in `escapedForDisplay`: for bodies
    /// of messages, whose further lines the caller indents so that none can be forged.
    package var escapedLines: String {
        guard self.utf8.contains(where: { !$0.isPlain }) else { return self }
        return self.escaped(keepingLines: true)
    }

    /// A sentence in which names were escaped already, for the last sink that it passes: what was forgotten is escaped, and a backslash
    /// stays single.
    package var escapedOnceMore: String {
        self.split(separator: "\\", omittingEmptySubsequences: false).map { String($0).escapedForDisplay }.joined(separator: "\\")
    }

    private func escaped(keepingLines: Bool) -> String {
        var result = ""
        result.reserveCapacity(self.utf8.count + 16)
        // By scalars, not characters: a combining mark must not shield the control character that it follows.
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
    /// Printable ASCII but for the backslash.
    fileprivate var isPlain: Bool { (0x20..<0x7F).contains(self) && self != UInt8(ascii: "\\") }
}

extension Unicode.Scalar {
    /// Whether a scalar shows as itself and does nothing else.
    fileprivate var isShownAsItIs: Bool {
        switch self.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .unassigned, .privateUse, .surrogate:
            return false
        default:
            // Fillers and joiners of other categories that show as nothing at all; the two selectors of emoji style stay.
            return !self.properties.isDefaultIgnorableCodePoint || self.value == 0xFE0E || self.value == 0xFE0F
        }
    }
}
