internal import CLinux

/// The entries of a directory that are not sent, by the patterns of `tar --exclude`.
///
/// A pattern matches an entry with everything below it. It is compared with the entry's path, which begins with the name of the directory
/// that is sent, and with the rest of that path behind each slash. `*` and `?` also match slashes.
package struct TreeExclusions: Sendable {
    /// The most patterns.
    package static let limit = 256
    /// The longest pattern, in bytes. The time to compare a path is bounded by the product of both lengths.
    package static let patternBytes = 1024

    private let patterns: [String]
    private let root: [UInt8]

    /// Creates exclusions for a directory that is sent under this name. Slashes at the end of a pattern are ignored.
    package init(_ patterns: [String], below root: String) {
        self.patterns = patterns.map { pattern in
            var pattern = pattern[...]
            while pattern.hasSuffix("/"), pattern.count > 1 { pattern.removeLast() }
            return String(pattern)
        }
        self.root = Array(root.utf8)
    }

    /// Whether an entry is excluded, by its path below the directory; the empty path is the directory itself.
    package func matches(_ path: [UInt8]) -> Bool {
        var whole = self.root.map { CChar(bitPattern: $0) }
        if !path.isEmpty { whole += [CChar(bitPattern: UInt8(ascii: "/"))] + path.map { CChar(bitPattern: $0) } }
        whole.append(0)
        return self.patterns.contains { earshot_is_excluded($0, whole) != 0 }
    }
}
