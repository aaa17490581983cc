import ArgumentParser
import EarshotSafety

/// One word that a shell may put on the command line, and what it is.
///
/// Peers choose names, and a shell is a programming language: bash's `compgen -W` expands every word that it is given, so that a peer
/// named `$(reboot)` would run as the user who presses Tab. Each shell is therefore given the word in the form that means nothing but
/// itself.
struct CompletionWord: Hashable, Sendable {
    /// A name, which may hold anything that is visible.
    let text: String
    /// An id that means the same.
    let id: String
    /// Shown beside it by zsh and fish; our own words, never a peer's.
    let note: String

    /// A name where it is clear, the beginning of the id otherwise.
    init(_ name: String, id: String, isClear: Bool, note: String) {
        self.init(name, typedID: Words.short(id), isClear: isClear, note: note)
    }

    /// A name where it is clear, the id as it may be given otherwise.
    init(_ name: String, typedID: String, isClear: Bool, note: String) {
        self.id = typedID
        self.text = isClear && Self.isTypeable(name) ? name : self.id
        self.note = note
    }

    /// The line that the shell's completion script reads; `nil` for no shell is the text alone.
    func line(for shell: CompletionShell?) -> String {
        switch shell {
        // Where a person began to type such a name, bash puts the rest of it there without quotes.
        case .bash?: Self.quoted(self.text.contains { $0 == "$" || $0 == "`" } ? self.id : self.text)
        // _describe takes what follows a colon for the description.
        case .zsh?:
            self.text.map { $0 == ":" || $0 == "\\" ? "\\\($0)" : "\($0)" }.joined() + ":\(self.note)"
        case .fish?: "\(self.text)\t\(self.note)"
        default: self.text
        }
    }

    /// In single quotes, in which bash expands nothing.
    private static func quoted(_ text: String) -> String {
        "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: #"'\''"#) + "'"
    }

    /// Whether a text can be typed and read as it is: all of it is visible, on one line, and it is not taken for an option.
    private static func isTypeable(_ text: String) -> Bool {
        let plain = text.split(separator: "\\").joined()
        return !text.isEmpty && !text.hasPrefix("-") && plain.escapedForDisplay == plain
    }
}
