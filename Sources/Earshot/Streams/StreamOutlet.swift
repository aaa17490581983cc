import EarshotSafety

#if canImport(Glibc)
    import Glibc
#endif

/// The destination of a stream's reader: a socket or pipe into which the kernel moves the bytes, each run with a head and a tail.
package final class StreamOutlet: Sendable {
    private let descriptor: CInt
    private let head: @Sendable (Int) -> String
    private let tail: String

    /// Takes ownership of a descriptor. `head` is called with the size of each run, and its result precedes the run; `tail` follows it.
    package init(descriptor: CInt, head: @escaping @Sendable (Int) -> String, tail: String) {
        self.descriptor = descriptor
        self.head = head
        self.tail = tail
    }

    deinit {
        close(self.descriptor)
    }

    /// Ends the connection, and with it a call that waits for the reader.
    func interrupt() {
        shutdown(self.descriptor, CInt(SHUT_RDWR))
    }

    /// Sends `count` bytes from the pipe. Returns `false` if the reader has gone. Called by one thread.
    func send(_ count: Int, from pipe: BytePipe) -> Bool {
        self.write(self.head(count)) && pipe.drain(all: count, to: self.descriptor) == 0 && self.write(self.tail)
    }

    private func write(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { BytePipe.write(UnsafeRawBufferPointer($0), to: self.descriptor) } == 0
    }
}
