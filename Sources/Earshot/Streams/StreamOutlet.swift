package import EarshotSafety
import NIOCore

#if canImport(Glibc)
    import Glibc
#endif

/// The destination of a stream's reader: a socket, pipe or file into which the kernel moves the bytes, each run with a head and a tail.
package final class StreamOutlet: Sendable {
    private let output: PassedDescriptor
    private let head: @Sendable (Int) -> String
    private let tail: String

    /// `head` is called with the size of each run, and its result precedes the run; `tail` follows it.
    package init(_ output: PassedDescriptor, head: @escaping @Sendable (Int) -> String = { _ in "" }, tail: String = "") {
        self.output = output
        self.head = head
        self.tail = tail
    }

    /// Ends a call that waits for the reader, and all later calls.
    func interrupt() { self.output.interrupt() }

    /// Sends bytes through the empty pipe. Blocks; called by one thread.
    /// - Throws: as ``send(_:from:)``.
    func send(_ bytes: ByteBuffer, through pipe: BytePipe) throws(EarshotError) {
        var rest = bytes
        while let run = rest.readSlice(length: min(rest.readableBytes, pipe.capacity)), run.readableBytes > 0 {
            guard run.withUnsafeReadableBytes({ pipe.fill(with: $0) }) else { throw Self.error(errno) }
            try self.send(run.readableBytes, from: pipe)
        }
    }

    /// Sends `count` bytes from the pipe. Blocks; called by one thread.
    /// - Throws: `cancelled` if the reader has gone, `no-space`, `storage`.
    func send(_ count: Int, from pipe: BytePipe) throws(EarshotError) {
        var code = self.write(self.head(count))
        if code == 0 { code = pipe.drain(all: count, to: self.output.file.descriptor) { _ in self.output.waitForRoom() } }
        if code == 0 { code = self.write(self.tail) }
        guard code == 0 else { throw Self.error(code) }
    }

    private func write(_ text: String) -> CInt {
        var text = text
        return text.withUTF8 {
            BytePipe.write(UnsafeRawBufferPointer($0), to: self.output.file.descriptor) { _ in self.output.waitForRoom() }
        }
    }

    private static func error(_ code: CInt) -> EarshotError {
        if [EPIPE, ECONNRESET, ECANCELED].contains(code) { return EarshotError(.cancelled, "its reader has gone") }
        let error = FileError("write", "the stream", code: code)
        return EarshotError(error.isNoSpace ? .noSpace : .storage, "\(error)")
    }
}
