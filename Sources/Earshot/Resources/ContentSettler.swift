internal import Crypto
internal import EarshotSafety
internal import EarshotTree
internal import NIOCore

/// Looks at where content is to go before it comes, and has it checked and on disk once it has come.
///
/// On a thread of its own beside the ``Publisher``'s, whose copies take as long as the largest content and the slowest disk: others are
/// offered and become whole meanwhile, and their senders do not wait for longer than they do.
actor ContentSettler {
    /// How much is read at once, in bytes.
    private static let readSize = 1024 * 1024

    private let executor: ThreadExecutor

    /// The thread.
    nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    /// Starts the thread.
    init() throws(EarshotError) {
        self.executor = try ThreadExecutor(name: "earshot-settle")
    }

    deinit {
        self.executor.stop()
    }

    /// Says what stands in the way of a file before its first byte; what comes in between shows when it is published.
    /// - Throws: `conflict` where the name is taken and nothing is to be replaced or renamed; `no-space`; `storage`.
    func check(
        _ name: SafeName, size: UInt64, spool: SafeDirectory, _ destination: Publisher.Destination
    ) throws(EarshotError) {
        do {
            let directory = try SafeDirectory(path: destination.directory)
            if destination.conflict == .skip, try directory.has(name) { throw Publisher.taken(name) }
            let isElsewhere = try directory.status().device != spool.status().device
            // What gets a second name takes no more than is set aside in the spool.
            guard isElsewhere || directory.isMountedApart(from: spool) else { return }
            // Behind another mount of the spool's own file system is a copy too, and there it takes its room beside the first.
            try Publisher.checkRoom(
                isElsewhere ? size : size.addingClamped(size), entries: 1, in: directory, reserve: destination.reserve)
        } catch {
            throw Publisher.error(error)
        }
    }

    /// Waits until a content is on disk.
    func sync(_ content: IncomingContent) throws(EarshotError) {
        try content.sink.sync()
    }

    /// The SHA-256 of all of a content, which is closed.
    ///
    /// In pieces, so that others go on meanwhile: that of a large file takes minutes, after which their senders would have given up. What runs
    /// in between has nothing in common with it: the settler has no state, nothing is written to a closed content, and the one who asks has it
    /// marked as finishing, so that nobody else has it checked or saved. It may be abandoned, as it might be at any time before, from the
    /// spool's thread: then a file is read on through its descriptor, a tree's reads fail, and the spool sees that it is not its own any more.
    func sha256(_ content: IncomingContent) async throws(EarshotError) -> [UInt8] {
        var hash = SHA256()
        var offset: UInt64 = 0
        while offset < content.size {
            let at = offset
            let chunk = try ByteBuffer.filled(count: Self.readSize) { space throws(EarshotError) in
                try content.sink.read(into: space, at: at)
            }
            guard chunk.readableBytes > 0 else { break }
            chunk.withUnsafeReadableBytes { hash.update(bufferPointer: $0) }
            offset += UInt64(chunk.readableBytes)
            await Task.yield()
        }
        return Array(hash.finalize())
    }
}
