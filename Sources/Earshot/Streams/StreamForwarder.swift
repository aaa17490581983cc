import EarshotSafety
import EarshotWire
import NIOCore

/// Moves a stream from its data connection to its reader. In plaintext the bytes stay in the kernel, and this process only counts them.
enum StreamForwarder {
    /// Moves all bytes. Returns an error if the peer or the reader is at fault for the end. The call blocks, and therefore needs a thread of
    /// its own.
    static func forward(_ connection: DataConnection, _ flow: IncomingFlow) async -> EarshotError? {
        defer { flow.hasMoved() }
        // If descriptors have run out, nothing is lost: the receiver requests the remaining bytes over the control connection.
        guard let outlet = flow.outlet, let pipe = try? BytePipe() else { return nil }
        do throws(EarshotError) {
            if let reader = await connection.takeOver() {
                try Self.move(reader, flow, outlet, pipe)
            } else {
                try Self.move(connection, flow, outlet, pipe)
            }
            return nil
        } catch {
            return error.code == .notConnected ? nil : error
        }
    }

    private static func move(
        _ reader: DataSocketReader, _ flow: IncomingFlow, _ outlet: StreamOutlet, _ pipe: BytePipe
    ) throws(EarshotError) {
        var reader = reader
        while flow.isOpen {
            let count = try reader.receive(into: pipe)
            guard count > 0 else { return }
            try flow.received(count)
            try outlet.send(count, from: pipe)
            flow.taken(count)
        }
    }

    private static func move(
        _ connection: DataConnection, _ flow: IncomingFlow, _ outlet: StreamOutlet, _ pipe: BytePipe
    ) throws(EarshotError) {
        while flow.isOpen, let piece = try connection.readBlocking() {
            try flow.received(piece.readableBytes)
            try outlet.send(piece, through: pipe)
            flow.taken(piece.readableBytes)
            connection.giveBack(piece)
        }
    }
}
