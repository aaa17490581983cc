import DequeModule
import EarshotSafety
import EarshotWire
import NIOCore

/// Moving the bytes of a transfer within the kernel.
extension DataSocketReader {
    /// Moves the next available bytes into the empty pipe. Returns their number, at least one; fewer at the end of a frame. Returns 0 at
    /// the end of the transfer.
    /// - Throws: `not-connected` if the connection is lost, `protocol-violation`.
    mutating func receive(into pipe: BytePipe) throws(EarshotError) -> Int {
        while var piece = self.pieces.popFirst() {
            guard let slice = piece.readSlice(length: min(piece.readableBytes, pipe.capacity)), slice.readableBytes > 0 else { continue }
            if piece.readableBytes > 0 { self.pieces.prepend(piece) }
            guard slice.withUnsafeReadableBytes({ pipe.fill(with: $0) }) else { throw DataConnection.lost }
            return slice.readableBytes
        }
        if let end = self.end {
            try end.get()
            return 0
        }
        while true {
            let limit = self.decoder.remainingInFrame
            guard limit == 0 else {
                self.socket.wake(after: 1)
                let count = pipe.fill(from: self.socket.descriptor, upTo: limit)
                guard count > 0 else { throw DataConnection.lost }
                self.decoder.skip(count)
                return count
            }
            if try self.readHeader() == .end { return 0 }
        }
    }
}
