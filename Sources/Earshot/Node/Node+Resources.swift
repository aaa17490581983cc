import EarshotCore
import EarshotSafety
public import EarshotWire
import FoundationEssentials
import Logging
import NIOCore

/// Listing resources, and the user's actions on them. The core decides, and its movers move the bytes.
extension Node {
    /// Returns every transfer, running and finished, oldest first.
    public func resources() -> [Resource] { self.core.resources(at: self.transport.timers.now) }

    /// Returns the transfers of one group, or all transfers if `group` is `nil`. A group that this machine has left is named by its full
    /// id.
    /// - Throws: `unknown-group`, `ambiguous-group`.
    public func resources(inGroup group: (any GroupReference)?) throws(EarshotError) -> [Resource] {
        guard let group else { return self.resources() }
        let id = try self.heardGroup(group.description)
        return self.resources().filter { $0.group?.id == id }
    }

    /// Returns the transfers of one share to the members of a group, in the order of the request; none if the share is unknown.
    public func resources(of share: ShareID) -> [Resource] { self.core.resources(of: share, at: self.transport.timers.now) }

    /// Returns a transfer.
    /// - Throws: `not-found`.
    public func resource(_ id: ResourceID) throws(EarshotError) -> Resource {
        try self.core.resource(id, at: self.transport.timers.now)
    }

    /// Accepts or refuses an offer that waits for the user. When this returns, an accepted offer has its space reserved. Exceptions are a
    /// directory that waits for another one from the same peer, and a transfer that is paused because its sender is absent.
    /// - Throws: `not-found`; `conflict` if the transfer does not wait for an answer; `busy` while too many others run; `no-space` and
    ///   similar if the offer cannot be accepted, which its sender learns too.
    @discardableResult
    public func respond(to id: ResourceID, _ decision: Resource.Decision) async throws(EarshotError) -> Resource {
        try await self.call(.resource(.respond(id, decision))).resource
    }

    /// Returns the content of a received resource that is still in the spool.
    /// - Throws: `not-found`; `conflict` if it is not a completed incoming one, or if its content was already fetched or published.
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

    /// Moves a received resource's content into a directory of the program, and removes it from the spool. The file has the sender's name
    /// for it or a numbered one. It appears complete, and immediately if the directory is on the file system of the state directory.
    /// - Returns: The path of the content.
    /// - Throws: as ``resourceContent(_:)``; `no-space`, `storage`, with nothing changed.
    public func publishContent(_ id: ResourceID, into directory: String) async throws(EarshotError) -> String {
        let content = try await self.resourceContent(id)
        let name: SafeName
        do {
            name = try SafeName(content.name)
        } catch {
            throw EarshotError(.nameRejected, "\(error)", underlying: error)
        }
        let row = try self.core.receivedResource(id)
        let destination = try Publisher.Destination(directory: directory, conflict: .rename, reserve: 0).under(row.folder)
        let path = try await self.spool.publisher.publish(try await self.spool.content(id), as: name, destination)
        guard let path else { throw EarshotError(.conflict, "\(name.description) is there already") }
        try await self.dropContent(id)
        return path
    }

    /// Removes a received resource's content from the spool, and keeps its row. This is the last step of fetching it.
    /// - Throws: `not-found`, `storage`; `conflict` while the content is being moved or removed.
    public func dropContent(_ id: ResourceID) async throws(EarshotError) {
        if case .failure(let error) = await self.call(.resource(.dropContent(id))) { throw error }
    }

    /// Cancels a running transfer and returns its row, or deletes a finished one with its content in the spool and returns `nil`.
    /// - Throws: `not-found`, `storage`; `conflict` in the moment in which it is too late to cancel, and while the transfer is being
    ///   removed.
    @discardableResult
    public func removeResource(_ id: ResourceID) async throws(EarshotError) -> Resource? {
        let answer = await self.call(.resource(.remove(id)))
        if case .done = answer { return nil }
        return try answer.resource
    }

    /// Cancels the running transfers of a share and returns the rows of all; if none is running, deletes them and returns no row.
    /// - Throws: `not-found`, `storage`.
    @discardableResult
    public func removeShare(_ id: ShareID) async throws(EarshotError) -> [Resource] {
        try await self.call(.resource(.removeShare(id))).resources
    }

    // MARK: Loading

    /// Moves the content of the spool aside instead of deleting it, if the state directory's database is new.
    static func setContentAside(in directory: String, _ logger: Logger) throws(EarshotError) {
        var places: [String] = []
        // Logged also if a later move fails and so does the start: the next start no longer finds the content that was moved.
        defer {
            if !places.isEmpty {
                logger.warning(
                    "the database is new and does not know the files that were received or waited to be sent: they were set aside",
                    metadata: ["directories": "\(places.joined(separator: ", "))"])
            }
        }
        try Spool.setAside(in: directory) { places.append($0) }
    }

    /// Loads the stored transfers, and matches them with the spool.
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
        // The core has ended transfers whose session or group is gone. Without this, their content would stay until the next start.
        for id in Set(lengths.keys).subtracting(unfinished) { await self.spool.abandon(id) }
        let swept = try await self.spool.sweep(keeping: Set(complete), outgoing: Set(outgoing))
        if !swept.removed.isEmpty {
            self.logger.info("removed unfinished content from the spool", metadata: ["files": "\(swept.removed.count)"])
        }
        for error in swept.left {
            self.logger.warning("cannot remove unneeded content from the spool", metadata: ["error": "\(error)"])
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
