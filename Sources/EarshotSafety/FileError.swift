internal import Glibc

internal import CLinux

/// A failed system call about a file: the action, its subject, and the errno.
package struct FileError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The attempted action, such as `open`.
    package let action: String
    /// The path or name, unescaped: escape it wherever it is shown.
    package let subject: String
    /// The errno.
    package let code: CInt

    /// Creates an error with the given errno, or the calling thread's own.
    package init(_ action: String, _ subject: String, code: CInt = errno) {
        self.action = action
        self.subject = subject
        self.code = code
    }

    /// Whether a full disk, a quota or a limit on file sizes caused the error.
    package var isNoSpace: Bool { [ENOSPC, EDQUOT, EFBIG].contains(self.code) }

    /// Whether an errno of setting permissions on a file of this user means that the file system does not keep them, as FAT does not.
    package static func keepsNoPermissions(_ code: CInt) -> Bool { [EPERM, EOPNOTSUPP, ENOSYS].contains(code) }

    /// The errno as text, beginning in lower case.
    package var reason: String { Self.reason(self.code) }

    /// Returns the text of an errno, beginning in lower case, such as `no space left on device`.
    package static func reason(_ code: CInt) -> String {
        let text = String(cString: earshot_error_text(code))
        return text.prefix(1).lowercased() + text.dropFirst()
    }

    /// One lower-case sentence, safe to display.
    package var description: String { "cannot \(self.action) \(self.subject.escapedForDisplay): \(self.reason)" }
}
