internal import Earshot
internal import EarshotClient
internal import EarshotWire

extension ControlAPI.PeerPing {
    /// Creates the API's value of a ping's result.
    init(_ ping: PeerPing) {
        self.init(
            peerID: ping.peerID, peerName: ping.peerName, connection: ping.connection.map { Tolerant($0) },
            // Rounded to microseconds: further digits are noise.
            roundTripMilliseconds: ping.roundTripNanoseconds.map { (Double($0) / 1_000).rounded() / 1_000 },
            steps: ping.steps.map {
                Step(step: Tolerant($0.kind), state: Tolerant($0.state), message: $0.message, code: $0.code.map { Tolerant($0) })
            })
    }
}
