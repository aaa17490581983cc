import Foundation
import Earshot
import Synchronization

extension MCSession {
    func sendFile(
        at resourceURL: URL, named resourceName: String, to peerID: MCPeerID, _ completionHandler: (((any Error)?) -> Void)?
    ) -> Progress? {
        // As on Apple's systems, the handler is called on the session's queue, where the program expects its callbacks.
        nonisolated(unsafe) let completionHandler = completionHandler
        let token = self.token
        let finish: @Sendable (MCError?) -> Void = { [weak self] error in
            guard let self else { return }
            self.queue.async { completionHandler?(error) }
        }
        guard resourceURL.isFileURL else {
            finish(MCError(.unsupported, "a resource is sent from a file URL"))
            return nil
        }
        guard self.isConnected(peerID) else {
            finish(MCError(.notConnected, "\(peerID.displayName) is not connected"))
            return nil
        }
        let size = (try? FileManager.default.attributesOfItem(atPath: resourceURL.path)[.size] as? NSNumber)?.uint64Value ?? 0
        let progress = TransferProgress(bytes: size)
        let transfer = OutgoingResource(peer: peerID.id, progress: progress, finish: finish)
        progress.cancellationHandler = { [weak self] in
            self?.owner.engine.post { await $0.cancel(transfer) }
        }
        self.owner.engine.post { engine in
            guard engine.pairing.pairs[peerID.id]?.token == token else { return transfer.end(MCError(.notConnected)) }
            await engine.send(transfer, resourceURL.path, as: resourceName)
        }
        return progress
    }
}

/// A resource that is being sent.
final class OutgoingResource: Sendable {
    let peer: PeerID
    let progress: TransferProgress
    /// The id of the transfer, once the node has its row.
    let id = Mutex<ResourceID?>(nil)
    private let once = Once()
    private let finish: @Sendable (MCError?) -> Void

    init(peer: PeerID, progress: TransferProgress, finish: @escaping @Sendable (MCError?) -> Void) {
        self.peer = peer
        self.progress = progress
        self.finish = finish
    }

    func end(_ error: MCError?) {
        guard self.once.first() else { return }
        self.progress.ended()
        self.finish(error)
    }
}

/// A resource that is being received.
struct IncomingResource {
    let peer: PeerID
    let name: String
    let progress: TransferProgress
}

extension PeerEngine {
    // MARK: Sending

    func send(_ transfer: OutgoingResource, _ path: String, as name: String) async {
        do {
            guard !transfer.progress.isCancelled else { throw MCError(.cancelled) }
            let rows = try await self.started().sendResource(to: [transfer.peer.description], path: path, name: name)
            guard let row = rows.first else { throw MCError(.unavailable) }
            transfer.id.withLock { $0 = row.id }
            self.uploads[row.id] = transfer
            transfer.progress.moved(to: row.transferred, of: row.size)
            // The transfer may have ended before it was in the table.
            if let now = try? await self.started().resource(row.id), now.state.isFinal { await self.finished(now) }
        } catch let error as EarshotError {
            transfer.end(MCError(error))
        } catch {
            transfer.end(error as? MCError ?? MCError(.unknown))
        }
    }

    func cancel(_ transfer: OutgoingResource) async {
        if let id = transfer.id.withLock({ $0 }) { _ = try? await (try? self.started())?.removeResource(id) }
        transfer.end(MCError(.cancelled))
    }

    // MARK: Receiving

    /// Handles that a transfer has started or progressed.
    func moved(_ row: Resource) async {
        if row.direction == .outgoing {
            self.uploads[row.id]?.progress.moved(to: row.transferred, of: row.size)
            return
        }
        guard let (pair, session) = self.member(row.peerID) else { return }
        guard pair.stage == .connected else {
            self.held[row.peerID, default: []].append { await $0.moved(row) }
            return
        }
        if let known = self.downloads[row.id] { return known.progress.moved(to: row.transferred, of: row.size) }
        let progress = TransferProgress(bytes: row.size)
        progress.cancellationHandler = { [weak self] in
            self?.post { engine in _ = try? await (try? engine.started())?.removeResource(row.id) }
        }
        self.downloads[row.id] = IncomingResource(peer: row.peerID, name: row.name, progress: progress)
        let (peer, name) = (pair.peer, row.name)
        session.call(pair.token) { $1.session($0, didStartReceivingResourceWithName: name, fromPeer: peer, with: progress) }
    }

    /// Handles the end of a transfer.
    func finished(_ row: Resource) async {
        let error =
            row.state == .completed ? nil : MCError(EarshotError(row.error ?? .unavailable, row.errorMessage ?? "the transfer failed"))
        guard row.direction == .incoming else {
            guard let transfer = self.uploads.removeValue(forKey: row.id) else { return }
            if error == nil { transfer.progress.moved(to: row.size, of: row.size) }
            transfer.end(row.state == .cancelled ? MCError(.cancelled, row.errorMessage) : error)
            return
        }
        guard let (pair, session) = self.member(row.peerID), let node = try? self.started() else { return }
        guard pair.stage == .connected else {
            self.held[row.peerID, default: []].append { await $0.finished(row) }
            return
        }
        // A small resource may be complete before any progress was reported.
        await self.moved(row)
        guard let download = self.downloads.removeValue(forKey: row.id) else { return }
        download.progress.ended()
        let (peer, name) = (pair.peer, row.name)
        guard error == nil else {
            let failure = row.state == .cancelled ? MCError(.cancelled, row.errorMessage) : error
            session.call(pair.token) {
                $1.session($0, didFinishReceivingResourceWithName: name, fromPeer: peer, at: nil, withError: failure)
            }
            _ = try? await node.removeResource(row.id)
            return
        }
        do throws(EarshotError) {
            // In a directory of the node, because the file system of `/tmp` may be a small one in memory.
            let place = try TemporaryDirectory()
            let path = try await node.publishContent(row.id, into: place.path)
            // The directory is deleted after the callback, unless the program has moved the file.
            session.call(pair.token, then: { withExtendedLifetime(place) {} }) {
                $1.session(
                    $0, didFinishReceivingResourceWithName: name, fromPeer: peer, at: URL(fileURLWithPath: path), withError: nil)
            }
        } catch {
            let failure = MCError(error)
            session.call(pair.token) {
                $1.session($0, didFinishReceivingResourceWithName: name, fromPeer: peer, at: nil, withError: failure)
            }
        }
        _ = try? await node.removeResource(row.id)
    }

    /// Ends the transfers of a peer that is gone.
    func endTransfers(of pair: Pair) {
        let (peer, session) = (pair.peer, self.sessions[pair.token]?.value)
        for (key, transfer) in self.uploads where transfer.peer == peer.id {
            self.uploads[key] = nil
            transfer.end(MCError(.notConnected))
            self.post { engine in _ = try? await (try? engine.started())?.removeResource(key) }
        }
        for (key, download) in self.downloads where download.peer == peer.id {
            self.downloads[key] = nil
            download.progress.ended()
            let name = download.name
            session?.call(pair.token) {
                $1.session($0, didFinishReceivingResourceWithName: name, fromPeer: peer, at: nil, withError: MCError(.notConnected))
            }
            self.post { engine in _ = try? await (try? engine.started())?.removeResource(key) }
        }
    }
}
