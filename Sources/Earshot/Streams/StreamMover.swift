import EarshotWire

/// The half of a stream that is on this machine: the flow that moves its bytes while it is open, and then their number.
struct StreamMover: Sendable {
    enum Half: Sendable {
        case outgoing(OutgoingFlow)
        case incoming(IncomingFlow)
        /// The number of moved bytes of a stream that is over.
        case moved(UInt64)
    }

    let peer: PeerID
    var half: Half

    /// Returns the number of moved bytes, and their rate.
    func progress(at now: MonotonicInstant) -> (transferred: UInt64, bytesPerSecond: UInt64) {
        switch self.half {
        case .outgoing(let flow): (flow.meter.transferred, flow.meter.bytesPerSecond(at: now))
        case .incoming(let flow): (flow.meter.transferred, flow.meter.bytesPerSecond(at: now))
        case .moved(let count): (count, 0)
        }
    }
}
