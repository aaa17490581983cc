import ArgumentParser
import EarshotSafety

/// A word that a shell may put on the command line, with its description.
///
/// Peers choose names, and shells evaluate words: bash's `compgen -W` expands every word that it is given, so that a peer named `$(reboot)`
/// would run that command as the user who presses Tab. Each shell therefore receives the word in a form that it takes literally.
struct CompletionWord: Hashable, Sendable {
    /// A name, which may contain any visible characters.
    let text: String
    /// An id that names the same peer, group or file.
    let id: String
    /// The description that zsh and fish show beside the word. It never contains a peer's text.
    let note: String

    /// A name if it is unambiguous, otherwise the beginning of the id.
    init(_ name: String, id: some CustomStringConvertible, isClear: Bool, note: String) {
        self.init(name, typedID: Words.short(id), isClear: isClear, note: note)
    }

    /// A name if it is unambiguous, otherwise the id in the form that commands accept.
    init(_ name: String, typedID: String, isClear: Bool, note: String) {
        self.id = typedID
        self.text = isClear && Self.isTypeable(name) ? name : self.id
        self.note = note
    }

    /// The line that the shell's completion script reads; the text alone if `shell` is `nil`.
    func line(for shell: CompletionShell?) -> String {
        switch shell {
        // If the user has begun to type such a name, bash inserts the rest without quotes.
        case .bash?: Self.quoted(self.text.contains { $0 == "$" || $0 == "`" } ? self.id : self.text)
        // _describe takes the text after a colon for the description.
        case .zsh?:
            self.text.map { $0 == ":" || $0 == "\\" ? "\\\($0)" : "\($0)" }.joined() + ":\(self.note)"
        case .fish?: "\(self.text)\t\(self.note)"
        default: self.text
        }
    }

    /// The text in single quotes, where bash expands nothing.
    private static func quoted(_ text: String) -> String {
        "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: #"'\''"#) + "'"
    }

    /// Whether a text can be typed and read: all of it is visible, it is one line, and it does not look like an option.
    private static func isTypeable(_ text: String) -> Bool {
        let plain = text.split(separator: "\\").joined()
        return !text.isEmpty && !text.hasPrefix("-") && plain.escapedForDisplay == plain
    }
}
