import EarshotClient
import EarshotSafety
import EarshotTree
import NIOCore

/// The transfer of received directories from the daemon to the user's place.
extension FileDownload {
    /// Saves into the directory, under the resource's name or a numbered one. If a signal arrives meanwhile, nothing is left behind.
    func saveTree(in directory: SafeDirectory, as name: SafeName) async throws -> SafeName {
        let source = try self.resource.publishedPath.map { path throws(CommandFailure) in try SourceTree(path) }
        let size = source?.size ?? self.resource.size
        let tree: TemporaryTree
        do {
            tree = try TemporaryTree(in: directory, size: size)
        } catch {
            throw CommandFailure(.cannotCreate, error.description)
        }
        return try await Interrupts.takingBack {
            tree.drop()
        } _: {
            var written: UInt64 = 0
            try await self.forEachOfTree(source) { piece in
                do {
                    try piece.withUnsafeReadableBytes { bytes throws(TreeError) in try tree.write(bytes) }
                } catch let error as TreeError {
                    throw SourceTree.failure(error)
                }
                written += UInt64(piece.readableBytes)
                ProgressLine.draw(name: self.resource.name, transferred: written, size: size, rate: 0)
            }
            ProgressLine.leave()
            try self.check(written)
            do {
                return try tree.publish(as: name)
            } catch {
                throw SourceTree.failure(error)
            }
        }
    }

    private func forEachOfTree(_ source: SourceTree?, _ body: (ByteBuffer) async throws -> Void) async throws {
        guard let source else {
            for try await piece in try await self.client.content(of: self.resource.id, asTree: true) { try await body(piece) }
            return
        }
        var offset: UInt64 = 0
        while let bytes = try source.next(at: offset, count: LocalSource.pieceSize) {
            offset += UInt64(bytes.count)
            try await body(ByteBuffer(bytes: bytes))
        }
    }

    /// Writes to standard output, as a tar archive.
    func printTree() async throws {
        if let path = self.resource.publishedPath {
            try SourceTree.archive(path, named: self.resource.name, pieceSize: LocalSource.pieceSize) { try Standard.write($0) }
        } else {
            for try await piece in try await self.client.content(of: self.resource.id) {
                try Standard.write(Array(piece.readableBytesView))
            }
        }
    }
}
