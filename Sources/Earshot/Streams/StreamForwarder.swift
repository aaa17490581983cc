import EarshotSafety
import EarshotWire
import NIOCore

/// Moves a stream from its plaintext data connection to its reader, on a thread of its own. The bytes stay in the kernel, and this process
/// only counts them.
enum StreamForwarder {
    /// Moves all bytes. Returns an error if the peer or the reader is at fault for the end.
    static func forward(_ connection: DataConnection, _ flow: IncomingFlow) async -> EarshotError? {
        defer { flow.hasMoved() }
        do throws(EarshotError) {
            guard let outlet = flow.outlet, let reader = await connection.takeOver() else { return nil }
            // If threads or descriptors have run out, nothing is lost: the receiver requests the remaining bytes over the control
            // connection.
            guard let thread = try? ThreadExecutor(name: "earshot-stream", isBulk: true) else { return nil }
            defer { thread.stop() }
            let result = await withCheckedContinuation { (continuation: CheckedContinuation<Result<Void, EarshotError>, Never>) in
                thread.run {
                    continuation.resume(returning: Result { () throws(EarshotError) in try Self.move(reader, flow, outlet) })
                }
            }
            try result.get()
            return nil
        } catch {
            return error.code == .notConnected ? nil : error
        }
    }

    private static func move(_ reader: DataSocketReader, _ flow: IncomingFlow, _ outlet: StreamOutlet) throws(EarshotError) {
        var reader = reader
        guard let pipe = try? BytePipe() else { return }
        while flow.isOpen {
            let count = try reader.receive(into: pipe)
            guard count > 0 else { return }
            try flow.received(count)
            guard outlet.send(count, from: pipe) else { throw EarshotError(.cancelled, "its reader has gone") }
            flow.taken(count)
        }
    }
}
