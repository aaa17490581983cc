internal import EarshotSafety

/// A settings file in the format of systemd's and Avahi's: `[section]`, `key = value`, comments after `#` and `;`.
///
/// A comment begins a line, or follows a blank. A value that contains ` #` or ` ;`, or blanks at its ends, must be in double quotes. There
/// are no escapes and no continuation lines. A section may occur several times. If a key is repeated, its last value applies, as in systemd
/// and Avahi. The parser knows no keys: it keeps every entry with its line number, so that the caller can report the line of an error.
/// Invalid bytes make it throw, and never crash it.
struct INIFile: Sendable, Hashable {
    /// One line `key = value`.
    struct Entry: Sendable, Hashable {
        let section: String
        let key: String
        /// The value without comment, surrounding blanks and quotes; empty if nothing follows the equals sign.
        let value: String
        let line: Int
    }

    /// One `[section]` line.
    struct Header: Sendable, Hashable {
        let section: String
        let line: Int
    }

    /// The largest file that is read, in bytes. Real settings files are far smaller.
    static let byteLimit = 1024 * 1024

    let entries: [Entry]
    let headers: [Header]

    /// Parses a file's bytes; `path` is for error messages.
    init(bytes: [UInt8], path: String) throws(SettingsError) {
        guard bytes.count <= Self.byteLimit else {
            throw SettingsError("\(path.escapedForDisplay) is larger than 1 MiB; a settings file is text of a few lines")
        }
        var entries: [Entry] = []
        var headers: [Header] = []
        var section: String?
        var number = 0
        for rawLine in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            number += 1
            let origin = SettingOrigin.file(path: path.escapedForDisplay, line: number)
            guard let line = String(validating: rawLine.last == UInt8(ascii: "\r") ? rawLine.dropLast() : rawLine, as: UTF8.self) else {
                throw SettingsError(origin, "not UTF-8; save the file as UTF-8 text")
            }
            guard !line.unicodeScalars.contains(where: { $0.properties.generalCategory == .control && $0 != "\t" }) else {
                throw SettingsError(origin, "a control character; a settings file is plain text")
            }
            let text = line.trimmingBlanks
            if text.isEmpty || text.hasPrefix("#") || text.hasPrefix(";") { continue }
            if text.hasPrefix("[") {
                let name = try Self.section(text, origin)
                headers.append(Header(section: name, line: number))
                section = name
                continue
            }
            guard let equals = text.firstIndex(of: "=") else {
                // Only the first word: a secret may follow it.
                let word = String(text.prefix { !$0.isBlank })
                throw SettingsError(
                    origin, "neither 'key = value', '[section]' nor a comment: '\(Self.shown(word))\(word == text ? "" : " ...")'")
            }
            let key = String(text[..<equals]).trimmingBlanks
            guard !key.isEmpty else { throw SettingsError(origin, "a value without a key; write 'key = value'") }
            guard let section else {
                throw SettingsError(origin, "'\(Self.shown(key))' stands before any section; put a line such as [peer] above it")
            }
            let value = try Self.value(String(text[text.index(after: equals)...]), origin)
            entries.append(Entry(section: section, key: key, value: value, line: number))
        }
        self.entries = entries
        self.headers = headers
    }

    private static func section(_ text: String, _ origin: SettingOrigin) throws(SettingsError) -> String {
        guard let close = text.firstIndex(of: "]") else {
            throw SettingsError(origin, "the section's closing bracket is missing; write [section]")
        }
        let rest = String(text[text.index(after: close)...])
        guard try self.value(rest, origin).isEmpty else {
            throw SettingsError(origin, "something follows the section's closing bracket; put it on a line of its own")
        }
        return String(text[text.index(after: text.startIndex)..<close]).trimmingBlanks
    }

    /// Returns the text after an equals sign or a bracket, without comment, blanks and quotes.
    private static func value(_ text: String, _ origin: SettingOrigin) throws(SettingsError) -> String {
        let trimmed = text.trimmingBlanks
        if trimmed.hasPrefix("\"") {
            let inner = trimmed.dropFirst()
            guard let close = inner.firstIndex(of: "\"") else {
                throw SettingsError(origin, "the closing quote is missing; write \"value\" on one line")
            }
            let rest = String(inner[inner.index(after: close)...])
            guard rest.isEmpty || (rest.first?.isBlank == true && self.withoutComment(rest).isEmpty) else {
                throw SettingsError(origin, "something follows the closing quote; a quoted value ends the line")
            }
            return String(inner[..<close])
        }
        return self.withoutComment(text)
    }

    /// Removes a `#` or `;` that follows a blank, and all text after it.
    private static func withoutComment(_ text: String) -> String {
        var previousIsBlank = false
        for index in text.indices {
            if previousIsBlank, text[index] == "#" || text[index] == ";" { return String(text[..<index]).trimmingBlanks }
            previousIsBlank = text[index].isBlank
        }
        return text.trimmingBlanks
    }

    /// Returns a part of the file for a message: escaped, and truncated to 60 characters.
    static func shown(_ text: String) -> String {
        let head = text.prefix(60)
        return String(head).escapedForDisplay + (head.count < text.count ? "..." : "")
    }
}

extension Character {
    fileprivate var isBlank: Bool { self == " " || self == "\t" }
}

extension String {
    /// The text without spaces and tabs at either end.
    var trimmingBlanks: String {
        guard let first = self.firstIndex(where: { !$0.isBlank }), let last = self.lastIndex(where: { !$0.isBlank }) else { return "" }
        return String(self[first...last])
    }
}
