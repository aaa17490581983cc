import Crypto

extension SHA256 {
    /// Returns the digest of several parts, each preceded by its length (u32), so that no two lists of parts share a digest.
    static func ofParts(_ parts: [[UInt8]]) -> SHA256Digest {
        var digest = SHA256()
        for part in parts {
            let length = UInt32(clamping: part.count)
            digest.update(data: [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: length >> $0) })
            digest.update(data: part)
        }
        return digest.finalize()
    }
}
