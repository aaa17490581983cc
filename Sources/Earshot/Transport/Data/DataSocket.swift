import CLinux
import DequeModule
import EarshotSafety
import EarshotWire
import NIOCore
import Synchronization

#if canImport(Glibc)
    import Glibc
#endif

/// The socket of a plaintext data connection on a thread of its own, which blocks on it. This needs no event loop, and no copies besides
/// the kernel's.
///
/// Only one thread at a time sends or receives. Any thread may call ``interrupt()``.
package final class DataSocket: Sendable {
    let descriptor: CInt
    /// The last low-water mark that was set in the kernel. Only the receiving thread changes it.
    private let wakesAfter = Atomic(1)

    /// Takes ownership of the descriptor.
    init(descriptor: CInt) {
        self.descriptor = descriptor
        earshot_socket_block(descriptor)
    }

    deinit {
        close(self.descriptor)
    }

    /// Ends the connection, and with it a call that blocks on the socket.
    func interrupt() {
        shutdown(self.descriptor, CInt(SHUT_RDWR))
    }

    // MARK: Sending

    /// Sends one frame with bytes of an open file, with sendfile(2). Returns `false` if the connection is lost.
    /// - Throws: `source-changed` if the file ends too early, `storage`.
    func send(_ extent: FileExtent) throws(EarshotError) -> Bool {
        guard let count = Int(exactly: extent.count), self.sendHeader(.data(count: count)) else { return false }
        var offset = extent.offset
        var remaining = extent.count
        while remaining > 0 {
            let sent = earshot_send_file(self.descriptor, extent.file.descriptor, offset, Int(clamping: remaining))
            if sent < 0 {
                let code = errno
                if code == EIO { throw EarshotError(.storage, "\(FileError("read", extent.file.subject, code: code))") }
                return false
            }
            guard sent > 0 else {
                throw EarshotError(.sourceChanged, "\(extent.file.subject) became shorter while it was sent; send it again")
            }
            offset += UInt64(sent)
            remaining -= UInt64(sent)
        }
        return true
    }

    /// Sends one frame with bytes in memory. Returns `false` if the connection is lost.
    func send(_ bytes: UnsafeRawBufferPointer) -> Bool {
        self.sendHeader(.data(count: bytes.count)) && self.write(bytes, more: false)
    }

    /// Sends the last frame, and waits a moment until the other side has read everything. Returns `false` if the connection is lost before
    /// that.
    func finish() -> Bool {
        guard self.sendHeader(.end) else { return false }
        shutdown(self.descriptor, CInt(SHUT_WR))
        return true
    }

    private func sendHeader(_ frame: DataFrame) -> Bool {
        var header = ByteBuffer()
        frame.encode(into: &header)
        return header.withUnsafeReadableBytes { self.write($0, more: frame != .end) }
    }

    private func write(_ bytes: UnsafeRawBufferPointer, more: Bool) -> Bool {
        var rest = bytes
        while !rest.isEmpty {
            let sent = earshot_send(self.descriptor, rest.baseAddress, rest.count, more ? 1 : 0)
            guard sent > 0 else { return false }
            rest = UnsafeRawBufferPointer(rebasing: rest[sent...])
        }
        return true
    }

    // MARK: Receiving

    /// Fills all of `space`.
    /// - Throws: `not-connected` if the connection is lost before that.
    func receive(into space: UnsafeMutableRawBufferPointer) throws(EarshotError) {
        var filled = 0
        while filled < space.count {
            // Receives without blocking, and waits separately. After a partial result, recv(2) itself would wait for the original
            // low-water mark, although the frame may have fewer bytes left.
            let count = recv(self.descriptor, space.baseAddress?.advanced(by: filled), space.count - filled, CInt(MSG_DONTWAIT))
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN {
                self.wait(for: min(space.count - filled, EarshotLimits.dataWake))
                continue
            }
            guard count > 0 else { throw DataConnection.lost }
            filled += count
        }
    }

    /// Waits until `count` bytes are available, or the connection has ended.
    private func wait(for count: Int) {
        self.wake(after: count)
        var waiting = pollfd(fd: self.descriptor, events: Int16(POLLIN), revents: 0)
        _ = poll(&waiting, 1, -1)
    }

    /// Sets how many bytes wake the waiting thread, which must not be more than it waits for. The end of the connection wakes it too. If
    /// the kernel refuses, the thread is woken more often.
    func wake(after count: Int) {
        guard self.wakesAfter.load(ordering: .relaxed) != count else { return }
        var value = CInt(clamping: count)
        setsockopt(self.descriptor, SOL_SOCKET, SO_RCVLOWAT, &value, socklen_t(MemoryLayout<CInt>.size))
        self.wakesAfter.store(count, ordering: .relaxed)
    }
}

/// The decoded input of a ``DataSocket``.
struct DataSocketReader {
    let socket: DataSocket
    var decoder: DataFrameDecoder
    /// Bytes that the event loop had already read.
    var pieces: Deque<ByteBuffer>
    /// The end of the connection, if the event loop has already seen it. Nothing follows the pieces then.
    let end: Result<Void, EarshotError>?

    /// Fills `block` with the next bytes of the transfer. Returns their number, at least one: as many as fit, or fewer at the end of a
    /// frame. Returns 0 at the end of the transfer.
    /// - Throws: `not-connected` if the connection is lost, `protocol-violation`.
    mutating func receive(into block: UnsafeMutableRawBufferPointer) throws(EarshotError) -> Int {
        while var piece = self.pieces.popFirst() {
            let count = min(piece.readableBytes, block.count)
            _ = piece.readWithUnsafeReadableBytes { bytes in
                block.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
                return count
            }
            if piece.readableBytes > 0 { self.pieces.prepend(piece) }
            if count > 0 { return count }
        }
        if let end = self.end {
            try end.get()
            return 0
        }
        while true {
            let count = min(block.count, self.decoder.remainingInFrame)
            guard count == 0 else {
                try self.socket.receive(into: UnsafeMutableRawBufferPointer(rebasing: block[..<count]))
                self.decoder.skip(count)
                return count
            }
            if try self.readHeader() == .end { return 0 }
        }
    }

    mutating func readHeader() throws(EarshotError) -> DataFrameDecoder.Piece? {
        let missing = self.decoder.missingInHeader
        let socket = self.socket
        let header = try ByteBuffer.filled(count: missing) { space throws(EarshotError) in
            try socket.receive(into: space)
            return missing
        }
        self.decoder.feed(header)
        do throws(WireError) {
            return try self.decoder.next()
        } catch {
            throw EarshotError(error.code.earshotCode, error.description, underlying: error)
        }
    }
}
