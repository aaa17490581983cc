extension TreeEntry {
    /// The runs of a file with holes, as they are encoded, 16 bytes each: those of an entry that was read lie in the bytes of its manifest,
    /// so that a list of two million of them is in memory once.
    package struct Extents: RandomAccessCollection, Sendable, Hashable {
        /// Bytes of an encoded extent.
        static let width = 16

        let encoded: ArraySlice<UInt8>

        /// Extents that are not in a manifest yet.
        package init(_ extents: [Extent]) {
            var bytes: [UInt8] = []
            bytes.reserveCapacity(extents.count * Self.width)
            for extent in extents {
                bytes.append(integer: extent.offset)
                bytes.append(integer: extent.length)
            }
            self.encoded = bytes[...]
        }

        /// Whole ones out of a manifest.
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
