internal import Earshot
internal import EarshotClient
internal import EarshotWire

extension ControlAPI.Stream {
    /// Creates the API's value of a stream.
    init(_ stream: ByteStream) {
        self.init(
            id: stream.id, direction: Tolerant(stream.direction), peerID: stream.peerID, peerName: stream.peerName,
            name: stream.name, state: Tolerant(stream.state), transferred: stream.transferred, bytesPerSecond: stream.bytesPerSecond,
            openedAt: stream.openedAt, closedAt: stream.closedAt,
            error: ControlAPI.Failure(code: stream.error, message: stream.errorMessage))
    }
}
