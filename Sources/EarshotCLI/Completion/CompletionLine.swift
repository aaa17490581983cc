/// The command line to complete, as the shell's words: bash keeps quotes and backslashes in them.
enum CompletionLine {
    /// The socket given on the command line.
    static func socket(in words: [String]) -> String? { self.value(of: "--socket", in: words) }

    /// The value of an option on the command line.
    static func value(of option: String, in words: [String]) -> String? {
        for (index, word) in words.enumerated() {
            // bash also breaks words at equals signs.
            if word == option, index + 1 < words.count {
                let isSign = words[index + 1] == "="
                return index + (isSign ? 2 : 1) < words.count ? Self.unquoted(words[index + (isSign ? 2 : 1)]) : nil
            }
            if word.hasPrefix("\(option)=") { return Self.unquoted(String(word.dropFirst(option.count + 1))) }
        }
        return nil
    }

    /// The arguments behind a verb of two words, such as `config set`, without the options and their values.
    static func arguments(behind verb: [String], in words: [String]) -> [String] {
        var rest = words.dropFirst()
        var arguments: [String] = []
        while let word = rest.popFirst() {
            if word == "--socket" || word == "--config" {
                // bash also breaks words at equals signs.
                if rest.popFirst() == "=" { rest = rest.dropFirst() }
            } else if !word.hasPrefix("-") {
                arguments.append(Self.unquoted(word))
            }
        }
        return arguments.starts(with: verb) ? Array(arguments.dropFirst(verb.count)) : []
    }

    /// The word without the quotes and backslashes that a shell removes.
    static func unquoted(_ word: String) -> String {
        var result = ""
        var quote: Character?
        var isEscaped = false
        for character in word {
            if isEscaped {
                result.append(character)
                isEscaped = false
            } else if character == "\\", quote != "'" {
                isEscaped = true
            } else if let open = quote {
                if character == open { quote = nil } else { result.append(character) }
            } else if character == "'" || character == "\"" {
                quote = character
            } else {
                result.append(character)
            }
        }
        return result
    }
}
