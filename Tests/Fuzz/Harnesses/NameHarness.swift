import EarshotSafety

/// Names and the one escaping function: the input is a peer's string.
///
/// A name is one harmless component, numbered or not; what is shown has nothing in it that acts, stays what it is when it is escaped
/// again in mind: taking the escapes out gives the text that went in.
enum NameHarness: Harness {
    static func run(_ input: [UInt8]) {
        let text = String(decoding: input, as: UTF8.self)
        let shown = text.escapedForDisplay
        self.checkShown(shown)
        demand(self.unescaped(shown)?.utf8.elementsEqual(text.utf8) == true, "two texts are never shown alike")
        for line in text.escapedLines.split(separator: "\n", omittingEmptySubsequences: false) { self.checkShown(String(line)) }
        do throws(NameRejected) {
            let name = try SafeName(text)
            self.checkComponent(name.description)
            demand(name.description.utf8.elementsEqual(text.utf8), "a name is kept byte for byte")
            for number in [2, 10_000] { self.checkComponent(name.numbered(number).description) }
        } catch {
            self.checkShown(error.description)
            demand(error.description.utf8.count < 4096, "a refusal is of bearable length")
        }
    }

    private static func checkComponent(_ name: String) {
        let bytes = Array(name.utf8)
        demand((1...255).contains(bytes.count), "a component's length")
        demand(!bytes.contains(UInt8(ascii: "/")) && !bytes.contains(0), "one component")
        demand(bytes != Array(".".utf8) && bytes != Array("..".utf8), "not a directory's own name")
    }

    private static func checkShown(_ text: String) {
        for scalar in text.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned, .surrogate:
                demand(false, "U+\(String(scalar.value, radix: 16)) is shown")
            default: break
            }
        }
    }

    private static func unescaped(_ text: String) -> String? {
        var result = String.UnicodeScalarView()
        var rest = text.unicodeScalars[...]
        while let scalar = rest.popFirst() {
            guard scalar == "\\" else {
                result.append(scalar)
                continue
            }
            switch rest.popFirst() {
            case "\\": result.append("\\")
            case "n": result.append("\n")
            case "t": result.append("\t")
            case "r": result.append("\r")
            case "e": result.append("\u{1B}")
            case "u":
                guard rest.popFirst() == "{", let close = rest.firstIndex(of: "}"),
                    let scalar = UInt32(String(rest[..<close]), radix: 16).flatMap(Unicode.Scalar.init)
                else { return nil }
                result.append(scalar)
                rest = rest[rest.index(after: close)...]
            default: return nil
            }
        }
        return String(result)
    }
}
