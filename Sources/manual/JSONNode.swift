import FoundationEssentials

/// A JSON document (RFC 8259) whose objects keep the written order of their members.
indirect enum JSONNode: Hashable {
    struct Member: Hashable {
        let key: String
        let value: JSONNode
    }

    case object([Member])
    case array([JSONNode])
    case string(String)
    /// A number as the document writes it.
    case number(String)
    case bool(Bool)
    case null

    struct Fault: Error, Hashable {
        /// The offset in the document's bytes, from 0.
        let position: Int
    }

    /// The maximum nesting depth of a document.
    static let depth = 64

    /// Throws a ``Fault`` if the bytes are not a JSON document, or exceed ``depth``.
    init(_ bytes: [UInt8]) throws(Fault) {
        var reader = Reader(bytes: bytes)
        self = try reader.value(depth: Self.depth)
        guard reader.next == nil else { throw reader.fault }
    }

    /// The member of an object with this name; nil if there is none, or if the node is not an object.
    subscript(key: String) -> JSONNode? { self.members.first { $0.key == key }?.value }

    var members: [Member] { if case .object(let members) = self { members } else { [] } }
    var elements: [JSONNode] { if case .array(let elements) = self { elements } else { [] } }
    var string: String? { if case .string(let text) = self { text } else { nil } }

    /// The node on one line, for readers.
    var text: String {
        switch self {
        case .object(let members): "{" + members.map { "\"\($0.key)\": \($0.value.text)" }.joined(separator: ", ") + "}"
        case .array(let elements): "[" + elements.map(\.text).joined(separator: ", ") + "]"
        case .string(let text): "\"\(text)\""
        case .number(let text): text
        case .bool(let value): value ? "true" : "false"
        case .null: "null"
        }
    }
}

extension JSONNode {
    private struct Reader {
        let bytes: [UInt8]
        var position = 0

        init(bytes: [UInt8]) { self.bytes = bytes }

        var fault: Fault { Fault(position: self.position) }

        /// Skips white space, and returns the next byte.
        var next: UInt8? {
            mutating get {
                while self.position < self.bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(self.bytes[self.position]) { self.position += 1 }
                return self.position < self.bytes.count ? self.bytes[self.position] : nil
            }
        }

        mutating func takes(_ character: Unicode.Scalar) -> Bool {
            guard self.next == UInt8(ascii: character) else { return false }
            self.position += 1
            return true
        }

        mutating func value(depth: Int) throws(Fault) -> JSONNode {
            guard depth > 0 else { throw self.fault }
            if self.takes("{") {
                return .object(
                    try self.list(until: "}") { (reader) throws(Fault) in
                        let key = try reader.string()
                        guard reader.takes(":") else { throw reader.fault }
                        return Member(key: key, value: try reader.value(depth: depth - 1))
                    })
            }
            if self.takes("[") {
                return .array(try self.list(until: "]") { (reader) throws(Fault) in try reader.value(depth: depth - 1) })
            }
            if self.next == UInt8(ascii: "\"") { return .string(try self.string()) }
            let word = self.word()
            switch word {
            case "true": return .bool(true)
            case "false": return .bool(false)
            case "null": return .null
            default:
                guard Double(word) != nil, word.first?.isLetter == false else { throw self.fault }
                return .number(word)
            }
        }

        private mutating func list<Element>(
            until end: Unicode.Scalar, _ element: (inout Reader) throws(Fault) -> Element
        ) throws(Fault) -> [Element] {
            var elements: [Element] = []
            if self.takes(end) { return [] }
            repeat { elements.append(try element(&self)) } while self.takes(",")
            guard self.takes(end) else { throw self.fault }
            return elements
        }

        /// Returns a number or a literal name, up to the next delimiter.
        private mutating func word() -> String {
            guard self.next != nil else { return "" }
            let rest = self.bytes[self.position...]
            let own = rest.prefix { ![0x20, 0x09, 0x0A, 0x0D, 0x2C, 0x5D, 0x7D].contains($0) }
            self.position = own.endIndex
            return String(decoding: own, as: UTF8.self)
        }

        private mutating func string() throws(Fault) -> String {
            guard self.next == UInt8(ascii: "\"") else { throw self.fault }
            var end = self.position + 1
            while end < self.bytes.count, self.bytes[end] != UInt8(ascii: "\"") { end += self.bytes[end] == UInt8(ascii: "\\") ? 2 : 1 }
            guard end < self.bytes.count else { throw self.fault }
            // Foundation decodes the escapes.
            guard let text = try? JSONDecoder().decode(String.self, from: Data(self.bytes[self.position...end])) else { throw self.fault }
            self.position = end + 1
            return text
        }
    }
}
