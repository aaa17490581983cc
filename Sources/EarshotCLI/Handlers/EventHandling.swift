import EarshotClient
import EarshotSafety
import FoundationEssentials
import Synchronization

/// Runs a command for each event of a type, one after the other and at most once. The daemon keeps events for readers that are slow, but not
/// for long: missed events are reported on standard error.
final class EventHandling: HandlerSource {
    /// The only lane.
    enum Lane: Hashable, Sendable { case events }

    struct Item: HandledItem {
        let event: ControlReply<ControlAPI.Event>
        var id: UInt64 { self.event.seq }
        var arrival: Date { self.event.time ?? .distantPast }
        var weight: Int { self.event.json.count }
    }

    let client: ControlClient
    let command: HandlerCommand
    /// The type of the events; `nil` for all.
    let type: String?
    let since: UInt64?

    private let trusts: PeerTrusts
    /// The event whose turn it is.
    private let pending = Mutex<Item?>(nil)
    private let (handled, wake) = AsyncStream.makeStream(of: Void.self)

    init(client: ControlClient, command: HandlerCommand, type: String?, since: UInt64?) {
        (self.client, self.command, self.type, self.since, self.trusts) = (client, command, type, since, PeerTrusts(client))
    }

    func watch(_ tell: @Sendable (Lane) -> Void) async throws {
        let events = try await self.client.watch(since: self.since)
        var handled = self.handled.makeAsyncIterator()
        for try await event in events {
            self.trusts.note(event)
            if event.value.type == .gap { Standard.note(String(Render.event(event.value).dropLast())) }
            guard self.type == nil || self.type == event.value.type.rawValue else { continue }
            // The next event is read when this one is handled: the daemon holds the others meanwhile.
            self.pending.withLock { $0 = Item(event: event) }
            tell(.events)
            await handled.next(isolation: #isolation)
        }
    }

    func fetch(_ lane: Lane, after place: String?) async throws -> (items: [Item], next: String?) {
        (self.pending.withLock { item in item.take().map { [$0] } ?? [] }, nil)
    }

    func handle(_ item: Item) async throws -> HandlerOutcome {
        defer { self.wake.yield() }
        let event = item.event.value
        var variables = HandlerVariables(event, socket: self.client.socketPath)
        if variables.trust.isEmpty, let peer = variables.fromID { variables.trust = try await self.trusts.trust(in: peer) }
        do {
            let ending = try await self.command.run(input: Standard.line(json: item.event.json), variables)
            if ending != .exited(0) { Standard.note("\(self.command.name) \(ending.words) for \(variables.event.escapedForDisplay)") }
        } catch let error as FileError {
            Standard.note("\(error) for \(variables.event.escapedForDisplay)")
        }
        return .handled
    }

    func terminate() { self.command.terminate() }

    func leave() { self.command.leave() }
}

extension HandlerVariables {
    /// Sets the variables of an event.
    init(_ event: ControlAPI.Event, socket: String) {
        if let message = event.message {
            self.init(message, trust: "", socket: socket)
        } else if let resource = event.resource {
            self.init(resource, name: resource.name.escapedForDisplay, trust: "", socket: socket)
        } else {
            self.init(event: "", socket: socket)
        }
        self.event = event.type.rawValue
        if let peer = event.peer { (self.from, self.fromID, self.trust) = (peer.name, peer.id, peer.trust.rawValue) }
        if let invitation = event.invitation {
            (self.from, self.fromID, self.group) = (invitation.peerName, invitation.peerID, invitation.group?.name ?? "")
        }
        if let verification = event.verification { (self.from, self.fromID) = (verification.peerName, verification.peerID) }
        if let stream = event.stream {
            (self.from, self.fromID, self.name) = (stream.peerName, stream.peerID, stream.name.escapedForDisplay)
        }
        if let recipient = event.recipient { (self.fromID, self.messageID) = (recipient.peerID, event.messageID) }
        if let group = event.group { self.group = group.name }
    }
}
