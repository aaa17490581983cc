import EarshotSafety

#if canImport(Glibc)
    import Glibc
#endif

/// Where the reader of a stream takes its bytes: a socket or a pipe into which the kernel moves them, each run in a frame of the reader's.
package final class StreamOutlet: Sendable {
    private let descriptor: CInt
    private let head: @Sendable (Int) -> String
    private let tail: String

    /// Takes ownership of a descriptor. `head` is written before each run of so many bytes, `tail` behind it.
    package init(descriptor: CInt, head: @escaping @Sendable (Int) -> String, tail: String) {
        self.descriptor = descriptor
        self.head = head
        self.tail = tail
    }

    deinit {
        close(self.descriptor)
    }

    /// Ends the call that waits for the reader, and the connection.
    func interrupt() {
        shutdown(self.descriptor, CInt(SHUT_RDWR))
    }

    /// Hands on so many bytes that are in the pipe; `false` where the reader has gone. By one thread.
    func send(_ count: Int, from pipe: BytePipe) -> Bool {
        self.write(self.head(count)) && pipe.drain(all: count, to: self.descriptor) == 0 && self.write(self.tail)
    }

    private func write(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { BytePipe.write(UnsafeRawBufferPointer($0), to: self.descriptor) } == 0
    }
}
