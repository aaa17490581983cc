package import EarshotSafety

extension ControlAPI {
    /// What a file keeps on its way, beside its name and its bytes.
    public struct FileAttributes: Hashable, Sendable {
        /// When the content was last changed: nanoseconds since 1970-01-01T00:00:00Z.
        public let modified: Int64
        /// Whether the file's owner may execute it.
        public let isExecutable: Bool
        /// Whether the file has holes: runs of zeros that take no room on its disk.
        public let hasHoles: Bool

        /// A value from its parts.
        public init(modified: Int64, isExecutable: Bool = false, hasHoles: Bool = false) {
            self.modified = modified
            self.isExecutable = isExecutable
            self.hasHoles = hasHoles
        }

        private static let second: Int64 = 1_000_000_000

        /// Those of a file on a disk. A time that cannot be told in 64 bits, before 1678 or after 2261, becomes the nearest that can.
        package init(_ attributes: EarshotSafety.FileAttributes) {
            let (seconds, isTooLarge) = attributes.seconds.multipliedReportingOverflow(by: Self.second)
            let (modified, overflow) = seconds.addingReportingOverflow(Int64(attributes.nanoseconds))
            let nearest = attributes.seconds < 0 ? Int64.min : Int64.max
            self.init(
                modified: isTooLarge || overflow ? nearest : modified, isExecutable: attributes.isExecutable, hasHoles: attributes.hasHoles)
        }

        /// The same for a file on a disk.
        package var onDisk: EarshotSafety.FileAttributes {
            let (seconds, rest) = self.modified.quotientAndRemainder(dividingBy: Self.second)
            return EarshotSafety.FileAttributes(
                isExecutable: self.isExecutable, hasHoles: self.hasHoles, seconds: rest < 0 ? seconds - 1 : seconds,
                nanoseconds: UInt32(clamping: rest < 0 ? rest + Self.second : rest))
        }
    }
}
