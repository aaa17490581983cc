import EarshotWire
import NIOCore

/// A stream with what hangs on it while it is open.
struct StreamRecord: Sendable {
    /// Its half that is on this machine.
    enum Flow {
        case outgoing(OutgoingFlow)
        /// `nil` until it is accepted.
        case incoming(IncomingFlow?)
    }

    var row: ByteStream
    var flow: Flow
    /// The connection on which both sides have spoken of it.
    var connection: Connection?
    var expiry: Scheduled<Void>?
    /// How far one that is received is on its way to a data connection.
    var inlet = StreamInlet()
    /// The same of one that is sent.
    var outlet = Outlet.control

    /// Where the bytes of a stream that is sent go.
    enum Outlet: Equatable {
        case control
        /// A data connection is worth it; others come first.
        case wanted
        /// Both sides open one.
        case opening
        /// It stands, or will not.
        case settled
    }

    private var meter: StreamMeter? {
        switch self.flow {
        case .outgoing(let flow): flow.meter
        case .incoming(let flow): flow?.meter
        }
    }

    /// Whether it waits to be accepted on this side.
    var isWaiting: Bool { self.row.direction == .incoming && self.row.state == .opening }

    /// The row as it is at the moment.
    func shown(at now: MonotonicInstant) -> ByteStream {
        guard self.row.state == .open, let meter else { return self.row }
        var row = self.row
        row.transferred = meter.transferred
        row.bytesPerSecond = meter.bytesPerSecond(at: now)
        return row
    }
}

/// A caller that waits for a stream to accept.
struct StreamAcceptor {
    let id: UInt64
    /// Any name where `nil`.
    let name: String?
    /// Any peer where `nil`.
    let peer: PeerID?
    let accepted: OneShot<Result<StreamContent, EarshotError>>
    var expiry: Scheduled<Void>?

    func takes(_ stream: ByteStream) -> Bool {
        (self.name == nil || self.name == stream.name) && (self.peer == nil || self.peer == stream.peerID)
    }
}
