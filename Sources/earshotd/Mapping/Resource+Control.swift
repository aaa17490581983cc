internal import Earshot
internal import EarshotClient
internal import EarshotWire

extension ControlAPI.Resource {
    /// Creates the API's value of a resource.
    init(_ resource: Resource) {
        let isReceived = resource.direction == .incoming && resource.state == .completed
        self.init(
            id: resource.id, direction: Tolerant(resource.direction), peerID: resource.peerID,
            peerName: resource.peerName, name: resource.name, kind: Tolerant(resource.kind), size: resource.size,
            transferred: resource.transferred, bytesPerSecond: resource.bytesPerSecond, secondsLeft: resource.secondsLeft,
            state: Tolerant(resource.state), digest: resource.digest, path: resource.path,
            error: ControlAPI.Failure(code: resource.error, message: resource.errorMessage), createdAt: resource.createdAt,
            completedAt: resource.completedAt, inSpool: isReceived ? resource.inSpool : nil, queued: resource.queued,
            group: resource.group.map(ControlAPI.GroupLabel.init), shareID: resource.shareID,
            folder: resource.folder)
    }
}
