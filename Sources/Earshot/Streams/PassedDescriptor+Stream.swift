package import EarshotSafety

extension PassedDescriptor {
    /// Examines a descriptor that a caller passed for a stream, on a thread: a server that is away may delay that.
    /// - Throws: `invalid-source` if it cannot carry a stream, `unavailable` if threads or descriptors have run out.
    package static func forStream(_ file: OpenFile) async throws -> PassedDescriptor {
        try await ThreadExecutor.blocking("earshot-stream") {
            guard self.canCarryStream(file.descriptor) else {
                throw EarshotError(.invalidSource, "a stream passes through a pipe or an ordinary file, not through this")
            }
            do { return try PassedDescriptor(file) } catch { throw EarshotError(.unavailable, "\(error)") }
        }
    }
}
