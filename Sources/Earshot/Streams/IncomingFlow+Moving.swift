import NIOCore
import Synchronization

/// Bytes that the kernel moves from a data connection to the reader: they are counted here, and do not pass.
extension IncomingFlow {
    /// The reader can have them moved there. Not of a stream that was cut short meanwhile: its row stays for a while, and must not keep the
    /// reader's connection.
    func use(_ outlet: StreamOutlet) {
        self.state.withLock { state in
            if case .failed? = state.end { return }
            state.outlet = outlet
        }
    }

    /// Has the reader take this data connection; `false` where it cannot.
    func hand(over connection: DataConnection) -> Bool {
        let isTaken = self.state.withLock { state in
            guard state.outlet != nil, state.end == nil else { return false }
            state.waiting = connection
            return true
        }
        self.changes.tell()
        return isTaken
    }

    /// Where to.
    var outlet: StreamOutlet? { self.state.withLock { $0.outlet } }

    /// The reader's data connection brings nothing any more.
    func hasMoved() {
        self.state.withLock { $0.moving = nil }
    }

    /// Whether more is to come.
    var isOpen: Bool { self.state.withLock { $0.end == nil } }

    /// So many bytes have come.
    /// - Throws: `protocol-violation` where that is more than the sender may send.
    func received(_ count: Int) throws(EarshotError) {
        let isPermitted = self.state.withLock { state in
            let (received, overflow) = state.received.addingReportingOverflow(UInt64(count))
            guard !overflow, received <= min(state.limit, state.size ?? .max) else { return false }
            state.received = received
            return true
        }
        guard isPermitted else { throw Self.tooMuch }
    }

    /// The reader has them.
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
