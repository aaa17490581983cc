internal import Earshot
internal import EarshotClient
internal import EarshotWire

extension ControlAPI.Status {
    /// Creates the API's value of a node's status.
    init(_ status: NodeStatus, version: String) {
        self.init(
            name: status.name.description, peerID: status.id, version: version,
            serviceType: status.serviceType.description, encryption: status.encryption.rawValue, addresses: status.addresses,
            discovery: ControlAPI.Discovery(status.discovery),
            counts: ControlAPI.Counts(
                peers: status.counts.peers, connected: status.counts.connections, sessions: status.counts.sessions,
                invitations: status.counts.pendingInvitations, unread: status.counts.unreadMessages, transfers: status.counts.transfers,
                outbox: status.counts.waitingMessages),
            startedAt: status.startedAt,
            local: ControlAPI.Local(
                instanceName: status.instanceName, port: Int(status.port), wantedPort: Int(status.wantedPort),
                stateDirectory: status.stateDirectory ?? "", quota: status.quota, reserve: status.reserve,
                identityCopies: status.identityCopies, sendLimit: status.sendLimit, receiveLimit: status.receiveLimit),
            localSend: ControlAPI.LocalSend(status.localSend))
    }
}

extension ControlAPI.LocalSend {
    /// Creates the API's value of the state of LocalSend; `nil` if it is off.
    init(_ status: NodeStatus.LocalSend?) {
        self.init(
            enabled: status != nil, port: status?.port.map(Int.init), wantedPort: status.map { Int($0.wantedPort) },
            fingerprint: status?.fingerprint, error: status?.error)
    }
}

extension ControlAPI.Discovery {
    /// Creates the API's value of the discovery's state.
    init(_ status: DiscoveryStatus) {
        self.init(backend: status.backend.rawValue, state: status.state.rawValue, error: status.error)
    }
}
