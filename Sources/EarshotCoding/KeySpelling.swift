/// The spelling of coding keys as snake case. Within one key type no two names share a spelling.
///
/// `maximumSpeed` is spelled `maximum_speed`, and `buildID` is spelled `build_id`, because the decoder knows the names that a key type has. A name
/// that would share its spelling with another name of its type is spelled as declared, between backticks: of `buildId` and `buildID` in one type the
/// second is spelled `` `buildID` ``. A key type that accepts every name (a dictionary's) has both.
enum KeySpelling {
    /// Marks a name that is spelled as declared. No Swift identifier contains one.
    private static let quote = UInt8(ascii: "`")
    /// The most words for which every capitalization is compared. A longer name must have the usual one, such as `maximumSpeed`.
    static let wordLimit = 6

    /// Returns the spelling of a key.
    static func spelling<Key: CodingKey>(of key: Key) -> String {
        let name = key.stringValue
        guard name.utf8.first != Self.quote else { return Self.quoted(name) }
        let snake = Self.snakeCase(name)
        return Self.owner(of: snake, in: Key.self, or: name) == name ? snake : Self.quoted(name)
    }

    /// Returns the spelling that earlier versions gave a key, if it differs and names no other key of the type.
    static func earlierSpelling<Key: CodingKey>(of key: Key) -> String? {
        let snake = Self.snakeCase(key.stringValue)
        return Self.owner(of: snake, in: Key.self, or: nil) == nil ? snake : nil
    }

    /// Returns the key that has a spelling; `nil` if the type has none.
    static func key<Key: CodingKey>(spelled spelling: String, as type: Key.Type) -> Key? {
        if spelling.utf8.count > 1, spelling.utf8.first == Self.quote, spelling.utf8.last == Self.quote {
            return Key(stringValue: String(decoding: spelling.utf8.dropFirst().dropLast(), as: UTF8.self))
        }
        return Key(stringValue: Self.owner(of: spelling, in: type, or: nil) ?? spelling)
    }

    private static func quoted(_ name: String) -> String { "`\(name)`" }

    /// Returns the first name with that spelling that the type accepts. `name` counts as accepted.
    private static func owner<Key: CodingKey>(of spelling: String, in type: Key.Type, or name: String?) -> String? {
        Self.names(spelledLike: spelling).first { candidate in
            (candidate == name || Key(stringValue: candidate)?.stringValue == candidate) && Self.snakeCase(candidate) == spelling
        }
    }

    /// Returns the names that may have this spelling: the usual one first, then the spelling itself, then those with acronyms.
    private static func names(spelledLike spelling: String) -> [String] {
        let start = String(spelling.prefix { $0 == "_" })
        let end = String(spelling.reversed().prefix { $0 == "_" })
        let words = spelling.split(separator: "_").map(String.init)
        guard let first = words.first, let capitalFirst = words.first.map(Self.capitalized) else { return [spelling] }
        let usual = start + first + words.dropFirst().map(Self.capitalized).joined() + end
        guard words.count <= Self.wordLimit else { return [usual, spelling] }
        var names = [start + first, start + capitalFirst, start + first.uppercased()]
        for word in words.dropFirst() {
            let (capitalized, upper) = (Self.capitalized(word), word.uppercased())
            names = names.flatMap { upper == capitalized ? [$0 + capitalized] : [$0 + capitalized, $0 + upper] }
        }
        return [usual, spelling] + names.map { $0 + end }
    }

    private static func capitalized(_ word: String) -> String { word.prefix(1).uppercased() + word.dropFirst() }

    /// Returns a name in snake case, like Foundation's `convertToSnakeCase`: a word begins at a capital after another letter, and at the
    /// last of several capitals before a small letter.
    static func snakeCase(_ name: String) -> String {
        guard !name.isEmpty else { return name }
        var words: [Substring] = []
        var start = name.startIndex
        var rest = name[name.index(after: start)...]
        while let upper = rest.firstIndex(where: { Self.holds($0, .uppercaseLetter) || Self.holds($0, .titlecaseLetter) }) {
            words.append(name[start..<upper])
            rest = name[upper...]
            guard let lower = rest.firstIndex(where: { Self.holds($0, .lowercaseLetter) }) else {
                start = upper
                rest = name[name.endIndex...]
                break
            }
            if lower == name.index(after: upper) {
                start = upper
            } else {
                start = name.index(before: lower)
                words.append(name[upper..<start])
            }
            rest = name[name.index(after: lower)...]
        }
        words.append(name[start...])
        return words.map { $0.lowercased() }.joined(separator: "_")
    }

    private static func holds(_ character: Character, _ category: Unicode.GeneralCategory) -> Bool {
        character.unicodeScalars.contains { $0.properties.generalCategory == category }
    }
}
