internal import Glibc

internal import CLinux

/// A call to the kernel about a file that failed: what was tried, on what, and its errno.
package struct FileError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What was tried, such as `open`.
    package let action: String
    /// The path or name as it came: escape it wherever it is shown.
    package let subject: String
    /// The errno.
    package let code: CInt

    /// An error with the given errno, or the calling thread's own.
    package init(_ action: String, _ subject: String, code: CInt = errno) {
        self.action = action
        self.subject = subject
        self.code = code
    }

    /// Whether the disk, a quota or a limit on file sizes is what stood in the way.
    package var isNoSpace: Bool { [ENOSPC, EDQUOT, EFBIG].contains(self.code) }

    /// Whether permissions that were to be set on a file of this user's own are none that its file system keeps, as FAT does not.
    package static func keepsNoPermissions(_ code: CInt) -> Bool { [EPERM, EOPNOTSUPP, ENOSYS].contains(code) }

    /// The errno in words, beginning in lower case.
    package var reason: String { Self.reason(self.code) }

    /// An errno in words, beginning in lower case, such as `no space left on device`.
    package static func reason(_ code: CInt) -> String {
        let text = String(cString: earshot_error_text(code))
        return text.prefix(1).lowercased() + text.dropFirst()
    }

    /// One lower-case sentence, fit to be shown.
    package var description: String { "cannot \(self.action) \(self.subject.escapedForDisplay): \(self.reason)" }
}
