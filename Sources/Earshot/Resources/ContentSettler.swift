internal import Crypto
internal import EarshotSafety
internal import EarshotTree
internal import NIOCore

/// Checks the destination of content before the content arrives, and verifies and syncs the content when it is complete.
///
/// It has a thread of its own beside the ``Publisher``'s, whose copies take as long as the largest content and the slowest disk. Other
/// transfers are offered and completed meanwhile, and their senders do not have to wait for a copy.
actor ContentSettler {
    /// The size of one read, in bytes.
    private static let readSize = 1024 * 1024

    private let executor: ThreadExecutor

    /// The executor of the settler's thread.
    nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    /// Starts the thread.
    init() throws(EarshotError) {
        self.executor = try ThreadExecutor(name: "earshot-settle")
    }

    deinit {
        self.executor.stop()
    }

    /// Checks, before the first byte of a file, whether it can be published. Later conflicts appear when it is published.
    /// - Throws: `conflict` if the name is in use and the file can neither replace the existing one nor be renamed; `no-space`; `storage`.
    func check(
        _ name: SafeName, size: UInt64, spool: SafeDirectory, _ destination: Publisher.Destination
    ) throws(EarshotError) {
        do {
            let directory = try SafeDirectory(path: destination.directory)
            if destination.conflict == .skip, try directory.has(name) { throw Publisher.taken(name) }
            let isElsewhere = try directory.status().device != spool.status().device
            // A hard link takes no more space than the spool has reserved.
            guard isElsewhere || directory.isMountedApart(from: spool) else { return }
            // A directory that is mounted apart from the spool, on the same file system, needs a copy as well. The copy takes its space in
            // addition to the original.
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

    /// Returns the SHA-256 of a complete content, which is closed.
    ///
    /// Reads in pieces, so that other work runs in between. Hashing a large file takes minutes, and the senders of others would time out.
    /// The work in between cannot interfere: the settler has no state, a closed content is not written, and the caller has marked the
    /// content as finishing, so that nothing else checks or saves it. The spool's thread may abandon the content at any time. Then a file
    /// is still read through its descriptor, a tree's reads fail, and the spool sees that the content is no longer its own.
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
