internal import NIOCore

/// Work that is done for a client, and only for as long as it is there.
enum ClientPresence {
    /// Does `operation`, and cancels it when the connection ends: while a body waits for its receiver nothing is read from the client, so
    /// that its end would go unnoticed.
    static func required<Value: Sendable>(
        on channel: any Channel, _ operation: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let (open, closer) = AsyncStream<Never>.makeStream()
        channel.closeFuture.whenComplete { _ in closer.finish() }
        return try await withThrowingTaskGroup(of: Value?.self) { group in
            group.addTask { try await operation() }
            group.addTask {
                for await _ in open {}
                return nil
            }
            var result: Value?
            while let next = try await group.next() {
                result = next ?? result
                group.cancelAll()
            }
            guard let result else { throw CancellationError() }
            return result
        }
    }
}
