extension TreeEntry {
    /// The data runs of a file with holes, in their encoding of 16 bytes each. The extents of a decoded entry share the bytes of its
    /// manifest, so a list of two million of them is in memory only once.
    package struct Extents: RandomAccessCollection, Sendable, Hashable {
        /// The size of an encoded extent, in bytes.
        static let width = 16

        let encoded: ArraySlice<UInt8>

        /// Creates extents that are not in a manifest yet.
        package init(_ extents: [Extent]) {
            var bytes: [UInt8] = []
            bytes.reserveCapacity(extents.count * Self.width)
            for extent in extents {
                bytes.append(integer: extent.offset)
                bytes.append(integer: extent.length)
            }
            self.encoded = bytes[...]
        }

        /// Creates extents from complete encodings in a manifest.
        init(encoded: ArraySlice<UInt8>) {
            self.encoded = encoded
        }

        package var startIndex: Int { 0 }
        package var endIndex: Int { self.encoded.count / Self.width }

        package subscript(index: Int) -> Extent {
            self.encoded.withUnsafeBytes { bytes in
                let start = index * Self.width
                return Extent(
                    offset: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: start, as: UInt64.self)),
                    length: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: start + 8, as: UInt64.self)))
            }
        }
    }
}
