package import EarshotSafety

/// The reason why a tree cannot be read, sent or written. Paths are relative to the tree's root and unescaped: `description` escapes them.
package enum TreeError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The bytes are not a tree, or contradict themselves.
    case malformed(String)
    /// A name or a link's target could lead out of the tree.
    case nameRejected(path: String, reason: String)
    /// The tree exceeds one of `TreeLimits`.
    case tooLarge(String)
    /// The entry is neither a file, a directory nor a symbolic link.
    case unsupported(path: String, what: String)
    /// The entry has changed since the scan.
    case sourceChanged(path: String)
    /// The source cannot be read.
    case unreadable(FileError)
    /// The destination cannot be written, or the written content cannot be read.
    case file(FileError)

    /// One lower-case sentence, safe to display.
    package var description: String {
        switch self {
        case .malformed(let what): "the directory's bytes are not a tree: \(what); send it again"
        case .nameRejected(let path, let reason): "\"\(Self.shown(path))\" \(reason); leave it out, or change it"
        case .tooLarge(let what): "the directory is too large for one transfer: \(what); send it in parts, or as an archive"
        case .unsupported(let path, let what):
            "\(Self.shown(path)) is \(what); only ordinary files, directories and symbolic links can be sent: leave it out"
        case .sourceChanged(let path): "\(Self.shown(path)) changed while it was sent; send it again"
        case .unreadable(let error): "\(error)"
        case .file(let error): "\(error)"
        }
    }

    /// The error for the peer, which must not learn where this side keeps its files.
    package var told: String {
        switch self {
        case .malformed, .tooLarge: self.description
        case .nameRejected(let path, let reason): "\"\(Self.shown(path.split(separator: "/").last.map(String.init) ?? ""))\" \(reason)"
        case .unsupported(_, let what): "the directory has \(what) in it"
        case .sourceChanged: "the directory changed while it was sent"
        case .unreadable: "the directory cannot be read"
        case .file(let error): error.isNoSpace ? "there is no space for the directory" : "the directory cannot be written"
        }
    }

    /// Returns a path for display. A long path is shortened, so that the sentence stays readable.
    static func shown(_ path: String) -> String {
        let scalars = path.unicodeScalars
        return (scalars.count > 120 ? String(String.UnicodeScalarView(scalars.prefix(120))) + "..." : path).escapedForDisplay
    }
}
