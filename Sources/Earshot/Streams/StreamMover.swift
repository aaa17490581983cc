import EarshotWire

/// The half of a stream that is on this machine: what moves its bytes for as long as it is open, and how many these were after that.
struct StreamMover: Sendable {
    enum Half: Sendable {
        case outgoing(OutgoingFlow)
        case incoming(IncomingFlow)
        /// It is over.
        case moved(UInt64)
    }

    let peer: PeerID
    var half: Half

    /// How much has moved, and how fast it does.
    func progress(at now: MonotonicInstant) -> (transferred: UInt64, bytesPerSecond: UInt64) {
        switch self.half {
        case .outgoing(let flow): (flow.meter.transferred, flow.meter.bytesPerSecond(at: now))
        case .incoming(let flow): (flow.meter.transferred, flow.meter.bytesPerSecond(at: now))
        case .moved(let count): (count, 0)
        }
    }
}
