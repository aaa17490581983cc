package import NIOCore

extension ByteBuffer {
    /// The readable bytes in storage of about their own size. A slice would retain everything that was read with it.
    package var compacted: ByteBuffer {
        guard self.storageCapacity > 2 * self.readableBytes + 1024 else { return self }
        var copy = ByteBufferAllocator().buffer(capacity: self.readableBytes)
        copy.writeImmutableBuffer(self)
        return copy
    }
}
