internal import Earshot
internal import EarshotClient
internal import EarshotWire
internal import FoundationEssentials

extension ControlAPI.Event {
    /// Creates the API's value of an event of the daemon, within one run of it; `nil` if the log holds something else.
    init?(_ event: EventLog.ProgramEvent, epoch: String) {
        guard let reload = event.content as? SettingsReload else { return nil }
        self.init(
            epoch: epoch, seq: event.sequence, time: event.time, type: .known(.settingsReloaded), changed: reload.changed,
            needsRestart: reload.needsRestart)
    }

    /// Creates the API's value of an event of the node, within one run of the daemon.
    init(_ event: NodeEvent, epoch: String) {
        typealias API = ControlAPI
        let seq = event.sequence
        let time = event.time
        switch event.kind {
        case .peerFound(let peer):
            self.init(epoch: epoch, seq: seq, time: time, type: .known(.peerFound), peer: API.Peer(peer))
        case .peerChanged(let peer):
            self.init(epoch: epoch, seq: seq, time: time, type: .known(.peerChanged), peer: API.Peer(peer))
        case .peerLost(let peer):
            self.init(epoch: epoch, seq: seq, time: time, type: .known(.peerLost), peer: API.Peer(peer))
        case .invitationReceived(let invitation):
            self.init(epoch: epoch, seq: seq, time: time, type: .known(.invitationReceived), invitation: API.Invitation(invitation))
        case .invitationResolved(let invitation):
            self.init(epoch: epoch, seq: seq, time: time, type: .known(.invitationResolved), invitation: API.Invitation(invitation))
        case .verificationChanged(let verification):
            self.init(
                epoch: epoch, seq: seq, time: time, type: .known(.verificationChanged), peerID: verification.peerID,
                verification: API.Verification(verification))
        case .sessionChanged(let session, let ended):
            self.init(epoch: epoch, seq: seq, time: time, type: .known(.sessionChanged), session: API.Session(session), ended: ended)
        case .messageReceived(let message):
            self.init(epoch: epoch, seq: seq, time: time, type: .known(.messageReceived), message: API.Message(message))
        case .messageStatus(let id, let recipient):
            self.init(
                epoch: epoch, seq: seq, time: time, type: .known(.messageStatus), messageID: id,
                recipient: API.Recipient(recipient))
        case .resourceOffered(let resource):
            self.init(epoch: epoch, seq: seq, time: time, type: .known(.resourceOffered), resource: API.Resource(resource))
        case .resourceProgress(let resource):
            self.init(epoch: epoch, seq: seq, time: time, type: .known(.resourceProgress), resource: API.Resource(resource))
        case .resourceFinished(let resource):
            self.init(epoch: epoch, seq: seq, time: time, type: .known(.resourceFinished), resource: API.Resource(resource))
        case .streamOpened(let stream):
            self.init(epoch: epoch, seq: seq, time: time, type: .known(.streamOpened), stream: API.Stream(stream))
        case .streamClosed(let stream):
            self.init(epoch: epoch, seq: seq, time: time, type: .known(.streamClosed), stream: API.Stream(stream))
        case .discoveryChanged(let status):
            self.init(epoch: epoch, seq: seq, time: time, type: .known(.discoveryChanged), discovery: API.Discovery(status))
        case .groupChanged(let group):
            self.init(epoch: epoch, seq: seq, time: time, type: .known(.groupChanged), group: API.Group(group))
        case .groupLeft(let id, let end):
            self.init(epoch: epoch, seq: seq, time: time, type: .known(.groupLeft), groupID: id, reason: end.rawValue)
        case .gap(let missed):
            self.init(epoch: epoch, seq: seq, time: time, type: .known(.gap), from: missed.lowerBound, to: missed.upperBound)
        }
    }
}
