/// An entry of a tree: its kind, its name, and the directory of the same tree that holds it.
package struct TreeEntry: Sendable, Hashable {
    /// A run of bytes that is not a hole.
    package struct Extent: Sendable, Hashable {
        /// The offset from the start of the file, in bytes.
        package let offset: UInt64
        /// The length in bytes, at least 1.
        package let length: UInt64

        /// Creates an extent from its parts.
        package init(offset: UInt64, length: UInt64) {
            self.offset = offset
            self.length = length
        }
    }

    /// The content of an entry.
    package enum Content: Sendable, Hashable {
        case directory
        /// A file with all of its bytes in the stream.
        case file(size: UInt64)
        /// A file with holes. Only these extents are in the stream: ascending, separate, within the size.
        case sparse(size: UInt64, Extents)
        /// A symbolic link, which is never followed.
        case link(target: [UInt8])
    }

    /// The time of the last change of the content.
    package struct Time: Sendable, Hashable {
        /// Seconds since 1970-01-01T00:00:00Z.
        package let seconds: Int64
        /// The nanoseconds of that time: 0 to 999,999,999.
        package let nanoseconds: UInt32

        /// Creates a time from its parts.
        package init(seconds: Int64, nanoseconds: UInt32) {
            self.seconds = seconds
            self.nanoseconds = nanoseconds
        }
    }

    /// The index of its directory in the manifest; the root is its own directory.
    package let parent: Int
    /// The name's bytes as in the file system, which may not be UTF-8. Empty for the root, whose name is the transfer's.
    package let name: [UInt8]
    /// The permission bits, within `TreeLimits.modeBits`.
    package let mode: UInt16
    /// The time of the last change of its content.
    package let modified: Time
    /// The content.
    package let content: Content

    /// Creates an entry from its parts.
    package init(parent: Int, name: [UInt8], mode: UInt16, modified: Time, content: Content) {
        self.parent = parent
        self.name = name
        self.mode = mode
        self.modified = modified
        self.content = content
    }

    /// The number of its bytes in the stream; `nil` if the sum overflows.
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
