package import EarshotSafety

extension ControlAPI {
    /// The attributes of a file that are sent with its name and content.
    public struct FileAttributes: Hashable, Sendable {
        /// The time of the last change of the content, in nanoseconds since 1970-01-01T00:00:00Z.
        public let modified: Int64
        /// Whether the file's owner may execute it.
        public let isExecutable: Bool
        /// Whether the file has holes: runs of zeros that occupy no disk space.
        public let hasHoles: Bool

        /// Creates a value from its parts.
        public init(modified: Int64, isExecutable: Bool = false, hasHoles: Bool = false) {
            self.modified = modified
            self.isExecutable = isExecutable
            self.hasHoles = hasHoles
        }

        private static let second: Int64 = 1_000_000_000

        /// Creates the attributes of a file on disk. A time outside the range of 64 bits (before 1678 or after 2261) becomes the nearest
        /// time in the range.
        package init(_ attributes: EarshotSafety.FileAttributes) {
            let (seconds, isTooLarge) = attributes.seconds.multipliedReportingOverflow(by: Self.second)
            let (modified, overflow) = seconds.addingReportingOverflow(Int64(attributes.nanoseconds))
            let nearest = attributes.seconds < 0 ? Int64.min : Int64.max
            self.init(
                modified: isTooLarge || overflow ? nearest : modified, isExecutable: attributes.isExecutable, hasHoles: attributes.hasHoles)
        }

        /// The attributes for a file on disk.
        package var onDisk: EarshotSafety.FileAttributes {
            let (seconds, rest) = self.modified.quotientAndRemainder(dividingBy: Self.second)
            return EarshotSafety.FileAttributes(
                isExecutable: self.isExecutable, hasHoles: self.hasHoles, seconds: rest < 0 ? seconds - 1 : seconds,
                nanoseconds: UInt32(clamping: rest < 0 ? rest + Self.second : rest))
        }
    }
}
