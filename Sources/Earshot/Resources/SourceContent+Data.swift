import EarshotWire
import NIOCore

/// Sending a source over a data connection, on the source's thread. For plaintext, the kernel sends; for TLS, the bytes go through
/// buffers.
extension SourceContent {
    package func send(
        from offset: UInt64, over connection: DataConnection, counting sent: TransferCount, at pacer: TransferPacer
    ) async throws(EarshotError) -> Bool {
        defer { connection.close() }
        let pace = DataPace(pacer, of: connection)
        do throws(EarshotError) {
            if let reader = await connection.takeOver() {
                return try self.send(from: offset, to: reader.socket, counting: sent, at: pace)
            }
            var position = offset
            while position < self.bytes.size {
                let room = try pace.room(for: Int(min(UInt64(EarshotLimits.dataBlock), self.bytes.size - position)))
                let buffer = try self.read(at: position, count: room)
                guard buffer.readableBytes > 0 else { break }
                pace.moved(buffer.readableBytes)
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

    private func send(
        from offset: UInt64, to socket: DataSocket, counting sent: TransferCount, at pace: DataPace
    ) throws(EarshotError) -> Bool {
        // Page-aligned, because the kernel copies to whole pages at half the cost.
        let block = UnsafeMutableRawBufferPointer.allocate(byteCount: EarshotLimits.dataBlock, alignment: 4096)
        defer { block.deallocate() }
        var position = offset
        while position < self.bytes.size {
            let count: UInt64
            let wanted = min(EarshotLimits.dataExtent, self.bytes.size - position)
            let room = try pace.room(for: Int(wanted))
            if let extent = try self.bytes.extent(at: position, count: UInt64(room)) {
                count = extent.count
                // Hashed before the kernel sends it. If both peers are on one machine, the receiver then finds the bytes in a cache.
                try self.hash(upTo: position + count, through: block)
                guard try socket.send(extent) else { return false }
            } else {
                let buffer = try self.read(at: position, count: min(room, EarshotLimits.dataBlock))
                guard buffer.readableBytes > 0, buffer.withUnsafeReadableBytes({ socket.send($0) }) else { return false }
                count = UInt64(buffer.readableBytes)
            }
            pace.moved(Int(clamping: count))
            position += count
            sent.value = position
        }
        return socket.finish()
    }
}
