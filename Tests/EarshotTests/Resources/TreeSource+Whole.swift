import NIOCore
import Testing

@testable import Earshot

extension TreeSource {
    /// Returns all bytes of the tree.
    func whole() throws -> ByteBuffer {
        var bytes = ByteBuffer()
        while bytes.readableBytes < Int(self.size) {
            let offset = UInt64(bytes.readableBytes)
            let count = try bytes.writeWithUnsafeMutableBytes(minimumWritableBytes: 65_536) { try self.read(into: $0, at: offset) }
            try #require(count > 0)
        }
        return bytes
    }
}
