import EarshotWire
import NIOCore

/// Sending a source over a data connection, on the source's thread. For plaintext, the kernel sends; for TLS, the bytes go through
/// buffers.
extension SourceContent {
    package func send(
        from offset: UInt64, over connection: DataConnection, counting sent: TransferCount
    ) async throws(EarshotError) -> Bool {
        defer { connection.close() }
        do throws(EarshotError) {
            if let reader = await connection.takeOver() {
                return try self.send(from: offset, to: reader.socket, counting: sent)
            }
            var position = offset
            while position < self.bytes.size {
                let buffer = try self.read(at: position, count: EarshotLimits.dataBlock)
                guard buffer.readableBytes > 0 else { break }
                try connection.writeBlocking(buffer)
                position += UInt64(buffer.readableBytes)
                sent.value = position
            }
            try await connection.finish()
            return true
        } catch let error where error.code == .notConnected {
            return false
        }
    }

    private func send(from offset: UInt64, to socket: DataSocket, counting sent: TransferCount) throws(EarshotError) -> Bool {
        // Page-aligned, because the kernel copies to whole pages at half the cost.
        let block = UnsafeMutableRawBufferPointer.allocate(byteCount: EarshotLimits.dataBlock, alignment: 4096)
        defer { block.deallocate() }
        var position = offset
        while position < self.bytes.size {
            let count: UInt64
            if let extent = try self.bytes.extent(at: position, count: EarshotLimits.dataExtent) {
                count = extent.count
                // Hashed before the kernel sends it. If both peers are on one machine, the receiver then finds the bytes in a cache.
                try self.hash(upTo: position + count, through: block)
                guard try socket.send(extent) else { return false }
            } else {
                let buffer = try self.read(at: position, count: EarshotLimits.dataBlock)
                guard buffer.readableBytes > 0, buffer.withUnsafeReadableBytes({ socket.send($0) }) else { return false }
                count = UInt64(buffer.readableBytes)
            }
            position += count
            sent.value = position
        }
        return socket.finish()
    }
}
