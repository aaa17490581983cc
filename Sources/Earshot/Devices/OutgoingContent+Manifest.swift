import EarshotTree
import EarshotWire
import NIOCore

extension OutgoingContent {
    /// Returns the list of a directory's entries.
    /// - Throws: `protocol-violation`, `name-rejected` or `too-large` if the content is no tree; as `read`.
    func treeManifest() async throws(EarshotError) -> TreeManifest {
        if let tree = self.source as? TreeSource { return tree.manifest }
        if let body = self as? BodySource { return try await body.manifest() }
        return try await self.readManifest()
    }

    /// Reads the list of a directory's entries from the beginning of the content.
    func readManifest() async throws(EarshotError) -> TreeManifest {
        let header = try await self.readAll(TreeLimits.headerLength, from: 0)
        let length = header.withUnsafeBytes { bytes in
            Result { () throws(TreeError) in try TreeManifest.lengths(header: bytes).manifest }.mapError { EarshotError($0) }
        }
        let entries = try await self.readAll(try length.get() - header.count, from: UInt64(header.count))
        do throws(TreeError) {
            return try TreeManifest(decoding: header + entries)
        } catch {
            throw EarshotError(error)
        }
    }

    private func readAll(_ count: Int, from offset: UInt64) async throws(EarshotError) -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            let piece = try await self.read(at: offset + UInt64(bytes.count), count: count - bytes.count)
            guard piece.readableBytes > 0 else { throw EarshotError(.malformed("it is cut short")) }
            bytes += piece.readableBytesView
        }
        return bytes
    }
}
