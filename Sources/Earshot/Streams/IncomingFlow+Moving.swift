import EarshotWaiting
import NIOCore
import Synchronization

/// Bytes that the kernel moves from a data connection to the reader. They are only counted here.
extension IncomingFlow {
    /// Sets the reader's outlet for moved bytes. Ignored for a failed stream: its row remains for a while, and must not retain the
    /// reader's connection.
    func use(_ outlet: StreamOutlet) {
        self.state.withLock { state in
            if case .failed? = state.end { return }
            state.outlet = outlet
        }
    }

    /// Passes a data connection to the reader. Returns `false` if the reader cannot take it.
    func hand(over connection: DataConnection) -> Bool {
        let isTaken = self.state.withLock { state in
            guard state.outlet != nil, state.end == nil else { return false }
            state.waiting = connection
            return true
        }
        self.changes.tell()
        return isTaken
    }

    /// The reader's outlet, if it has one.
    var outlet: StreamOutlet? { self.state.withLock { $0.outlet } }

    /// Records that the reader's data connection has ended.
    func hasMoved() {
        self.state.withLock { $0.moving = nil }
    }

    /// Whether more bytes are expected.
    var isOpen: Bool { self.state.withLock { $0.end == nil } }

    /// Counts received bytes.
    /// - Throws: `protocol-violation` if they exceed the sender's limit.
    func received(_ count: Int) throws(EarshotError) {
        let isPermitted = self.state.withLock { state in
            let (received, overflow) = state.received.addingReportingOverflow(UInt64(count))
            guard !overflow, received <= min(state.limit, state.size ?? .max) else { return false }
            state.received = received
            return true
        }
        guard isPermitted else { throw Self.tooMuch }
    }

    /// Records that the reader has received the bytes.
    func taken(_ count: Int) {
        self.state.withLock { state in
            state.lent = count
            if state.received == state.size, state.end == nil { state.end = .whole }
        }
        self.noteTaken()
    }

    static var tooMuch: EarshotError {
        EarshotError(.protocolViolation, "more came over the stream's data connection than was permitted")
    }
}
