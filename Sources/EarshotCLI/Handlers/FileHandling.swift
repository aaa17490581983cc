import EarshotClient
import EarshotSafety
import EarshotTree
import FoundationEssentials
import Synchronization

extension ControlAPI.Resource: HandledItem {
    var arrival: Date { self.completedAt ?? self.createdAt ?? .distantPast }
    var weight: Int { self.name.utf8.count }
}

/// Fetches each received file into a directory, runs a command for it, and lets the daemon forget the file once the command has exited
/// with 0. Without a command, prints the path. Every file is a lane of its own: a failed file holds back no other.
final class FileHandling: HandlerSource {
    let client: ControlClient
    let command: HandlerCommand?
    /// The senders whose files are handled; empty for all.
    let senders: [PeerID]
    let group: GroupID?
    let directory: SafeDirectory
    /// Whether hidden files are fetched too.
    let hidden: Bool
    let asJSON: Bool

    private let trusts: PeerTrusts

    private struct State {
        /// Rows that are reported and not handled yet.
        var rows: [ResourceID: ControlAPI.Resource] = [:]
        /// The names of fetched files whose command has failed.
        var fetched: [ResourceID: SafeName] = [:]
        /// Remarks that were made.
        var told: Set<Remark> = []
    }

    private enum Remark: Hashable {
        case hidden(ResourceID)
        case published
    }

    private let state = Mutex(State())

    init(
        client: ControlClient, command: HandlerCommand?, senders: [PeerID] = [], group: GroupID? = nil, directory: SafeDirectory,
        hidden: Bool = false, asJSON: Bool
    ) {
        (self.client, self.command, self.senders, self.group, self.trusts) = (client, command, senders, group, PeerTrusts(client))
        (self.directory, self.hidden, self.asJSON) = (directory, hidden, asJSON)
    }

    /// Handles files until a signal arrives.
    func follow(jobs: Int, retry: Duration) async throws {
        // Removes the partial files of an earlier run that was killed.
        StaleParts.remove(from: self.directory)
        if self.command == nil { Standard.endWithReader() }
        if Terminal.isError { Standard.note("waiting for files; press Ctrl-C to stop") }
        try await HandlerLoop(source: self, jobs: jobs, retry: retry).run()
    }

    func watch(_ tell: @Sendable (ResourceID) -> Void) async throws {
        // Subscribes before the first look, so that no file is missed in between.
        let events = try await self.client.watch()
        try await self.look(tell)
        for try await event in events {
            self.trusts.note(event)
            if event.value.type == .gap || !event.unreadable.isEmpty {
                try await self.look(tell)
            } else if let resource = event.resource, event.value.type == .resourceFinished {
                self.note(resource, tell)
                if resource.publishedPath != nil, self.isAbout(resource) { self.remark(.published) }
            }
        }
    }

    /// Reports all wanted files that the daemon has.
    private func look(_ tell: (ResourceID) -> Void) async throws {
        for resource in try await whileAway({ try await self.client.resources(in: self.group).resources }) { self.note(resource, tell) }
    }

    private func note(_ resource: ControlAPI.Resource, _ tell: (ResourceID) -> Void) {
        guard resource.isFetchable, self.isAbout(resource) else { return }
        guard self.hidden || !resource.isHidden else { return self.remark(.hidden(resource.id), resource) }
        self.state.withLock { $0.rows[resource.id] = resource }
        tell(resource.id)
    }

    private func isAbout(_ resource: ControlAPI.Resource) -> Bool {
        (self.senders.isEmpty || self.senders.contains(resource.peerID)) && (self.group == nil || self.group == resource.group?.id)
    }

    /// Tells the user once about files that are not fetched.
    private func remark(_ remark: Remark, _ resource: ControlAPI.Resource? = nil) {
        guard self.state.withLock({ $0.told.insert(remark).inserted }) else { return }
        if let resource {
            FileGetCommand.tell(left: [resource])
        } else {
            Standard.note("the daemon saves received files in a directory itself; such files are not fetched")
            Standard.say("handle them with: earshot on resource.finished")
        }
    }

    func fetch(_ lane: ResourceID, after place: String?) async throws -> (items: [ControlAPI.Resource], next: String?) {
        if let row = self.state.withLock({ $0.rows.removeValue(forKey: lane) }) { return ([row], nil) }
        do {
            let row = try await whileAway { try await self.client.resource(lane).value }
            if row.isFetchable { return ([row], nil) }
        } catch ControlError.problem(let problem) where problem.code == .notFound {}
        self.state.withLock { $0.fetched[lane] = nil }
        return ([], nil)
    }

    func handle(_ resource: ControlAPI.Resource) async throws -> HandlerOutcome {
        let download = FileDownload(resource: resource, client: self.client)
        let subject = "\(resource.name.escapedForDisplay) from \(resource.peerName.escapedForDisplay)"
        let (place, name): (SafeDirectory, SafeName)
        do {
            place = try download.place(in: self.directory)
            name = try await self.save(download, in: place)
        } catch ControlError.problem(let problem) where problem.code == .notFound {
            // Another program has fetched or deleted the file.
            return .handled
        } catch {
            ProgressLine.leave()
            try Task.checkCancellation()
            return .failed("cannot fetch \(subject): \(FailureReport(error).message ?? "it failed")")
        }
        let path = Self.path(of: name, in: place)
        do {
            if let failure = try await self.run(path, name, resource) { return .failed("\(failure) for \(subject)") }
        } catch let error as FileError {
            return .failed("\(error) for \(subject)")
        }
        try await untilNoted(subject) { try await download.drop() }
        self.state.withLock { $0.fetched[resource.id] = nil }
        if self.command == nil { try await self.print(download.shown(name, in: place, below: self.directory), resource) }
        return .handled
    }

    /// Fetches a file, unless that was done before its command failed and the file is still there.
    private func save(_ download: FileDownload, in place: SafeDirectory) async throws -> SafeName {
        let id = download.resource.id
        if let name = self.state.withLock({ $0.fetched[id] }), try place.has(name) { return name }
        let name = try await whileAway { try await download.save(in: place) }
        self.state.withLock { $0.fetched[id] = name }
        return name
    }

    /// Returns the sentence for a command that failed.
    private func run(_ path: String, _ name: SafeName, _ resource: ControlAPI.Resource) async throws -> String? {
        guard let command = self.command else { return nil }
        let trust = try await self.trusts.trust(in: resource.peerID)
        let variables = HandlerVariables(resource, name: name.description, trust: trust, socket: self.client.socketPath)
        let ending = try await command.run(file: path, variables)
        return ending == .exited(0) ? nil : "\(command.name) \(ending.words)"
    }

    private func print(_ path: String, _ resource: ControlAPI.Resource) async throws {
        guard self.asJSON else { return try Standard.write(path.escapedForDisplay + "\n") }
        let row = try? await whileAway { try await self.client.resource(resource.id).value }
        try Standard.write(json: try ControlJSON.encode(row ?? resource))
    }

    /// The path of a file in the directory. It never begins with a hyphen, so that no command takes it for an option.
    private static func path(of name: SafeName, in place: SafeDirectory) -> String {
        let path = place.subject(name)
        return path.hasPrefix("-") ? "./\(path)" : path
    }

    func terminate() { self.command?.terminate() }

    func leave() { self.command?.leave() }
}

extension HandlerVariables {
    /// Sets the variables of a received file with this name in the user's directory.
    init(_ resource: ControlAPI.Resource, name: String, trust: String, socket: String) {
        self.init(event: ControlAPI.Event.Kind.resourceFinished.rawValue, socket: socket)
        (self.from, self.fromID, self.trust) = (resource.peerName, resource.peerID, trust)
        (self.group, self.size, self.name) = (resource.group?.name ?? "", resource.size, name)
    }
}
