import EarshotCore
import EarshotSafety
public import EarshotWire
import FoundationEssentials
import Logging
import NIOCore

/// Listing resources, and what a person does with them: the core decides, and its movers move.
extension Node {
    /// Every transfer, running and finished, oldest first.
    public func resources() -> [Resource] { self.core.resources(at: self.transport.timers.now) }

    /// Those that were sent to one group, where one is named; one that this machine has left by its whole id.
    /// - Throws: `unknown-group`, `ambiguous-group`.
    public func resources(inGroup name: String?) throws(EarshotError) -> [Resource] {
        guard let name else { return self.resources() }
        let group = try self.heardGroup(name)
        return self.resources().filter { $0.group?.id == group }
    }

    /// The transfers of one thing to the members of a group, in the order in which they were asked for; none where no such thing is known.
    public func resources(of share: ShareID) -> [Resource] { self.core.resources(of: share, at: self.transport.timers.now) }

    /// - Throws: `not-found`.
    public func resource(_ id: ResourceID) throws(EarshotError) -> Resource {
        try self.core.resource(id, at: self.transport.timers.now)
    }

    /// Accepts or refuses an offer that waits for a person. An accepted one has its space when this returns, but for a directory that waits
    /// for another one from the same peer, and for what is paused because its sender is away.
    /// - Throws: `not-found`; `conflict` where nothing waits for an answer; `busy` while too many others run; `no-space` and the like where
    ///   it cannot be taken, which its sender is told too.
    public func respond(to id: ResourceID, _ decision: Resource.Decision) async throws(EarshotError) -> Resource {
        try await self.call(.resource(.respond(id, decision))).resource
    }

    /// The content of a received resource that is still in the spool.
    /// - Throws: `not-found`; `conflict` where it is not a completed incoming one, or its content was fetched or published already.
    public func resourceContent(_ id: ResourceID) async throws(EarshotError) -> ResourceContent {
        let row = try self.core.receivedResource(id)
        guard row.inSpool else {
            if let path = row.path { throw EarshotError(.conflict, "the resource \(id) was put at \(path.escapedForDisplay)") }
            throw EarshotError(
                .conflict, "the content of the resource \(id) is not here any more: it was fetched, or a later file has taken its place")
        }
        let bytes: ResourceContent.Bytes =
            switch row.kind {
            case .file: .file(try await self.spool.open(id))
            case .directory: .tree(try await self.spool.openTree(id))
            }
        return ResourceContent(row, bytes, spool: self.spool)
    }

    /// Puts a received resource's content into a directory of the program's, under the name that its sender gave or a numbered one, and lets go
    /// of it; returns the path. It appears there whole, and at once where the directory lies on the file system of the state directory.
    /// - Throws: as ``resourceContent(_:)``; `no-space`, `storage`, with nothing changed.
    public func publishContent(_ id: ResourceID, into directory: String) async throws(EarshotError) -> String {
        let content = try await self.resourceContent(id)
        let name: SafeName
        do {
            name = try SafeName(content.name)
        } catch {
            throw EarshotError(.nameRejected, "\(error)", underlying: error)
        }
        let destination = Publisher.Destination(directory: directory, conflict: .rename, reserve: 0)
        let path = try await self.spool.publisher.publish(try await self.spool.content(id), as: name, destination)
        guard let path else { throw EarshotError(.conflict, "\(name.description) is there already") }
        try await self.dropContent(id)
        return path
    }

    /// Lets go of a received resource's content, and keeps its row: how fetching it ends.
    /// - Throws: `not-found`, `storage`; `conflict` while it is being put in place or removed.
    public func dropContent(_ id: ResourceID) async throws(EarshotError) {
        if case .failure(let error) = await self.call(.resource(.dropContent(id))) { throw error }
    }

    /// Cancels a running transfer, and gives its row; deletes a finished one with its content in the spool, and gives `nil`.
    /// - Throws: `not-found`, `storage`; `conflict` in the moment in which it is too late to cancel, and while it is being removed.
    public func removeResource(_ id: ResourceID) async throws(EarshotError) -> Resource? {
        let answer = await self.call(.resource(.remove(id)))
        if case .done = answer { return nil }
        return try answer.resource
    }

    /// Cancels those of a share that are running, and gives the rows of all; deletes them once all are over, and gives none.
    /// - Throws: `not-found`, `storage`.
    public func removeShare(_ id: ShareID) async throws(EarshotError) -> [Resource] {
        try await self.call(.resource(.removeShare(id))).resources
    }

    // MARK: Beginning

    /// What lies in the spool of a state directory whose database is new is not thrown away.
    static func setContentAside(in directory: String, _ logger: Logger) throws(EarshotError) {
        var places: [String] = []
        // Also where the other one stays and the start fails: the next one finds nothing more of what was moved.
        defer {
            if !places.isEmpty {
                logger.warning(
                    "the database is new and does not know the files that were received or waited to be sent: they were set aside",
                    metadata: ["directories": "\(places.joined(separator: ", "))"])
            }
        }
        try Spool.setAside(in: directory) { places.append($0) }
    }

    /// What was kept, as far as the spool has it too.
    func loadTransfers(_ state: StoredState) async throws(EarshotError) {
        let stored = Dictionary(state.transfers.map { ($0.id, $0) }) { one, _ in one }
        var partial: [ResourceID: Spool.Left] = [:]
        for row in state.resources where !row.state.isFinal && row.direction == .incoming && stored[row.id]?.isTaken == true {
            partial[row.id] = Spool.Left(size: row.size, peer: row.peerID)
        }
        let lengths = await self.spool.adopt(partial)
        var loaded: [LoadedTransfer] = []
        for row in state.resources {
            let place = row.kind == .directory && row.inSpool ? await self.spool.placeOfTree(row.id) : nil
            loaded.append(LoadedTransfer(row: row, stored: stored[row.id], held: lengths[row.id], place: place))
        }
        self.handle(.transfers(loaded, state.endedTransfers))
        let (complete, unfinished, outgoing) = self.core.spooled
        // What the core has ended, since its session or group is gone, would lie there until the next start.
        for id in Set(lengths.keys).subtracting(unfinished) { await self.spool.abandon(id) }
        let swept = try await self.spool.sweep(keeping: Set(complete), outgoing: Set(outgoing))
        if !swept.removed.isEmpty {
            self.logger.info("removed unfinished content from the spool", metadata: ["files": "\(swept.removed.count)"])
        }
        for error in swept.left {
            self.logger.warning("what nobody needs any more stays in the spool, and takes its room", metadata: ["error": "\(error)"])
        }
    }
}

extension Answer {
    var resource: Resource {
        get throws(EarshotError) {
            if case .resource(let resource) = self { return resource }
            throw self.error
        }
    }

    var resources: [Resource] {
        get throws(EarshotError) {
            if case .resources(let resources) = self { return resources }
            throw self.error
        }
    }
}
