import EarshotSafety
public import EarshotWire
import FoundationEssentials
import Logging
import NIOCore
import OrderedCollections

/// Listing resources, and what a person does with them; how they move is in `Node+Uploads` and `Node+Downloads`.
extension Node {
    /// Every transfer, running and finished, oldest first.
    public func resources() -> [Resource] {
        let now = self.transport.timers.now
        return self.transfers.values.map { $0.shown(at: now) }
    }

    /// - Throws: `not-found`.
    public func resource(_ id: ResourceID) throws(EarshotError) -> Resource {
        guard let transfer = self.transfers[id] else { throw EarshotError(.notFound, "there is no resource \(id)") }
        return transfer.shown(at: self.transport.timers.now)
    }

    /// Accepts or refuses an offer that waits for a person. An accepted one has its space when this returns, but for a directory that waits
    /// for another one from the same peer.
    /// - Throws: `not-found`; `conflict` where nothing waits for an answer; `busy` while too many others run; `no-space` and the like where
    ///   it cannot be taken, which its sender is told too.
    public func respond(to id: ResourceID, _ decision: Resource.Decision) async throws(EarshotError) -> Resource {
        let row = try self.resource(id)
        guard row.direction == .incoming else { throw EarshotError(.conflict, "the resource \(id) was offered by this side") }
        guard self.isWaiting(id) else {
            throw EarshotError(.conflict, "the resource \(id) waits for no answer: it is \(row.state.rawValue)")
        }
        switch decision {
        case .accept:
            guard self.takenTransfers(of: row.peerID) < EarshotLimits.incomingTransfers else {
                throw EarshotError(.busy, "\(EarshotLimits.incomingTransfers) files of \(row.peerName) are on their way; accept it later")
            }
            try await self.accept(id)
        case .refuse:
            _ = self.tellEnd(of: id, Refusal(code: .declined))
            self.finishTransfer(id, .cancelled, EarshotError(.declined, "refused here"))
        }
        return try self.resource(id)
    }

    /// The content of a received resource that is still in the spool.
    /// - Throws: `not-found`; `conflict` where it is not a completed incoming one, or its content was fetched or published already.
    public func resourceContent(_ id: ResourceID) async throws(EarshotError) -> ResourceContent {
        let row = try self.resource(id)
        guard row.direction == .incoming, row.state == .completed else {
            throw EarshotError(.conflict, "the resource \(id) is not a received one that is complete")
        }
        guard self.transfers[id]?.isPublishing != true else { throw Self.isPublishing(id) }
        guard row.inSpool else {
            if let path = row.path { throw EarshotError(.conflict, "the resource \(id) was put at \(path.escapedForDisplay)") }
            throw EarshotError(.conflict, "the content of the resource \(id) was fetched already")
        }
        let bytes: ResourceContent.Bytes =
            switch row.kind {
            case .file: .file(try await self.spool.open(id))
            case .directory: .tree(try await self.spool.openTree(id))
            }
        return ResourceContent(row, bytes, spool: self.spool)
    }

    /// Lets go of a received resource's content, and keeps its row: how fetching it ends.
    /// - Throws: `not-found`, `storage`.
    public func dropContent(_ id: ResourceID) async throws(EarshotError) {
        let row = try self.resource(id)
        guard row.direction == .incoming, row.state.isFinal, row.inSpool else { return }
        guard self.transfers[id]?.isPublishing != true else { throw Self.isPublishing(id) }
        var dropped = row
        dropped.inSpool = false
        // The row first: content without a row is swept at the next start, a row without content would be a lie.
        try await self.persist([.putResource(dropped)])
        self.transfers[id]?.row.inSpool = false
        try await self.spool.remove(id)
    }

    private static func isPublishing(_ id: ResourceID) -> EarshotError {
        EarshotError(.conflict, "the resource \(id) has arrived and is being put in place; try it again afterwards")
    }

    /// Cancels a running transfer, and gives its row; deletes a finished one with its content in the spool, and gives `nil`.
    /// - Throws: `not-found`, `storage`; `conflict` in the moment in which it is too late to cancel.
    public func removeResource(_ id: ResourceID) async throws(EarshotError) -> Resource? {
        let row = try self.resource(id)
        guard self.transfers[id]?.isPublishing != true else { throw Self.isPublishing(id) }
        guard row.state.isFinal else {
            self.endTransfer(id, .cancelled, "cancelled here", told: Refusal(code: .cancelled, explanation: "cancelled by a person"))
            return self.transfers[id]?.row ?? row
        }
        try await self.persist(self.removal(of: row))
        self.forget(row)
        if row.inSpool { try await self.spool.remove(id) }
        return nil
    }
}
