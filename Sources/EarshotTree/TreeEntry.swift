/// One entry of a tree: what it is, what it is called, and which directory of the same tree holds it.
package struct TreeEntry: Sendable, Hashable {
    /// A run of bytes that is not a hole.
    package struct Extent: Sendable, Hashable {
        /// From the start of the file, in bytes.
        package let offset: UInt64
        /// At least 1.
        package let length: UInt64

        /// An extent from its parts.
        package init(offset: UInt64, length: UInt64) {
            self.offset = offset
            self.length = length
        }
    }

    /// What it is.
    package enum Content: Sendable, Hashable {
        case directory
        /// All of its bytes are in the stream.
        case file(size: UInt64)
        /// Only these extents are in the stream: ascending, apart, within the size. Between them are holes.
        case sparse(size: UInt64, Extents)
        /// A symbolic link: it is never followed.
        case link(target: [UInt8])
    }

    /// When the content was last changed.
    package struct Time: Sendable, Hashable {
        /// Since 1970-01-01T00:00:00Z.
        package let seconds: Int64
        /// 0 to 999,999,999.
        package let nanoseconds: UInt32

        /// A time from its parts.
        package init(seconds: Int64, nanoseconds: UInt32) {
            self.seconds = seconds
            self.nanoseconds = nanoseconds
        }
    }

    /// The place of its directory in the manifest; the root is its own.
    package let parent: Int
    /// Its bytes as the file system has them: not always UTF-8. Empty for the root, whose name is the transfer's.
    package let name: [UInt8]
    /// The permission bits, within `TreeLimits.modeBits`.
    package let mode: UInt16
    /// When its content was last changed.
    package let modified: Time
    /// What it is.
    package let content: Content

    /// An entry from its parts.
    package init(parent: Int, name: [UInt8], mode: UInt16, modified: Time, content: Content) {
        self.parent = parent
        self.name = name
        self.mode = mode
        self.modified = modified
        self.content = content
    }

    /// How many of its bytes are in the stream; `nil` where the sum overflows.
    package var dataLength: UInt64? {
        switch self.content {
        case .directory, .link: return 0
        case .file(let size): return size
        case .sparse(_, let extents):
            var sum: UInt64 = 0
            for extent in extents {
                let (next, overflow) = sum.addingReportingOverflow(extent.length)
                guard !overflow else { return nil }
                sum = next
            }
            return sum
        }
    }

    var isDirectory: Bool { self.content == .directory }
}
