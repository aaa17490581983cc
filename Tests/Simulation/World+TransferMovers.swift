import DequeModule
import EarshotCore
import EarshotWire
import NIOCore
import OrderedCollections

/// The movers of resources, whose bytes are reduced to a stamp and their number.
extension World {
    // MARK: Orders

    mutating func beginMover(_ mover: TransferMover, with command: TransferCommand, on machine: Int) {
        self.machines[machine].transfers.started += 1
        let number = self.machines[machine].transfers.started
        if self.machines[machine].transfers.current[mover.row.id] != nil {
            self.fail(.transfers, "\(machine) has two movers of \(mover.row.id)")
        }
        self.machines[machine].transfers.movers[number] = mover
        self.machines[machine].transfers.current[mover.row.id] = number
        self.order(.command(command), mover.row.id, on: machine)
    }

    /// Gives an order to a resource's mover; `false` if it has none.
    @discardableResult
    mutating func order(_ order: TransferMover.Order, _ id: ResourceID, on machine: Int) -> Bool {
        guard let number = self.machines[machine].transfers.current[id] else { return false }
        self.machines[machine].transfers.movers[number]?.orders.append(order)
        self.stir(number, on: machine)
        return true
    }

    /// Begins the next order, or stops the mover.
    mutating func stir(_ number: Int, on machine: Int) {
        guard let mover = self.machines[machine].transfers.movers[number], !mover.isBusy else { return }
        if mover.isStopped { return self.end(number, mover, on: machine) }
        guard !mover.orders.isEmpty else { return }
        self.machines[machine].transfers.movers[number]?.isBusy = true
        let time = self.diskTime(machine)
        self.clock.plan(.moves(machine, run: self.machines[machine].run, number), after: time)
    }

    /// Stops a mover.
    private mutating func end(_ number: Int, _ mover: TransferMover, on machine: Int) {
        let id = mover.row.id
        for case .command(.removeContent) in mover.orders { self.removeContent(id, on: machine) }
        self.machines[machine].devices.reserved.remove(id)
        if mover.row.direction == .incoming, !mover.isKept { self.machines[machine].shelf.partial.removeValue(forKey: id) }
        self.machines[machine].transfers.movers.removeValue(forKey: number)
        // Kept content is synced to disk first.
        let time = mover.isKept ? self.diskTime(machine) : .microseconds(30)
        self.clock.plan(self.report(.stopped, of: id, on: machine), after: time)
    }

    /// Carries out a mover's first order.
    mutating func move(_ number: Int, on machine: Int) {
        guard var mover = self.machines[machine].transfers.movers[number], let order = mover.orders.popFirst() else { return }
        self.machines[machine].transfers.movers[number] = mover
        var isDone = true
        switch order {
        case .command(.removeContent): self.removeContent(mover.row.id, on: machine)
        case _ where mover.hasFailed: break
        case .command(.receiveBody(let row, _, let attributes, let call)):
            mover.attributes = attributes
            isDone = self.receiveBody(number, row, call, &mover, on: machine)
        case .command(.receiveData): isDone = self.receiveData(number, mover, on: machine)
        case .command(let command): self.perform(command, &mover, on: machine)
        case .write(let content, let offset): self.write(content, at: offset, &mover, on: machine)
        }
        if isDone { self.finishOrder(number, mover, on: machine) }
    }

    mutating func finishOrder(_ number: Int, _ changed: TransferMover, on machine: Int) {
        // Orders may have come meanwhile.
        self.machines[machine].transfers.movers[number]?.hasFailed = changed.hasFailed
        self.machines[machine].transfers.movers[number]?.content = changed.content
        self.machines[machine].transfers.movers[number]?.attributes = changed.attributes
        self.machines[machine].transfers.movers[number]?.position = changed.position
        self.machines[machine].transfers.movers[number]?.isBusy = false
        self.stir(number, on: machine)
    }

    private mutating func removeContent(_ id: ResourceID, on machine: Int) {
        self.machines[machine].shelf.complete.removeValue(forKey: id)
        self.tell(.contentRemoved(for: nil, nil), id, on: machine)
    }

    mutating func tell(_ report: TransferReport, _ id: ResourceID, on machine: Int) {
        self.clock.plan(self.report(report, of: id, on: machine), after: .microseconds(30))
    }

    mutating func fail(_ failure: TransferFailure, _ mover: inout TransferMover, on machine: Int) {
        mover.hasFailed = true
        self.counts[.moversFailed] += 1
        self.tell(.failed(failure), mover.row.id, on: machine)
    }

    mutating func fail(_ code: EarshotError.Code, _ words: String, _ mover: inout TransferMover, on machine: Int) {
        self.fail(TransferFailure(EarshotError(code, words), told: Refusal(code: .cancelled, explanation: words)), &mover, on: machine)
    }

    // MARK: Carrying out orders

    private mutating func perform(_ command: TransferCommand, _ mover: inout TransferMover, on machine: Int) {
        let id = mover.row.id
        let shelf = self.machines[machine].shelf
        switch command {
        case .open(_, let source):
            if let failure = self.diskFailure(machine), source == .path { return self.fail(failure, &mover, on: machine) }
            guard let content = shelf.sources[id] else { return self.fail(.invalidSource, "it is gone", &mover, on: machine) }
            mover.content = content
            self.machines[machine].shelf.sent[id] = content
            self.machines[machine].shelf.everSent[id, default: []].append(content)
            let opened = OpenedSource(
                size: content.count, stamp: "\(content.stamp)", attributes: mover.row.kind == .file ? content.attributes : nil)
            self.tell(.opened(source == .body ? nil : opened), id, on: machine)
        case .compare(let count):
            let digest = mover.content.flatMap { count <= $0.count ? Content(stamp: $0.stamp, count: count).digest : nil }
            self.tell(.compared(digest), id, on: machine)
        case .send(let start, let end, let link):
            self.sendChunks(of: mover.row, from: start, upTo: end, on: link)
            mover.position = end
            self.tell(.sent(to: end), id, on: machine)
        case .sendOverData(let offset): self.sendOverData(&mover, from: offset, on: machine)
        case .digest:
            // Content that has changed meanwhile is not the content that was sent.
            guard let content = mover.content, mover.source == .body || shelf.sources[id] == content else {
                return self.fail(.sourceChanged, "it has changed", &mover, on: machine)
            }
            self.tell(.digested(content.digest), id, on: machine)
        case .resume(let row, _, let attributes):
            mover.attributes = attributes
            guard let (size, content) = shelf.partial[id], size == row.size, content.count > 0, self.diskFailure(machine) == nil else {
                self.machines[machine].shelf.partial.removeValue(forKey: id)
                return self.tell(.held(nil), id, on: machine)
            }
            mover.position = content.count
            self.tell(.held(ResourceHeld(count: content.count, digest: content.digest)), id, on: machine)
        case .begin(let row, _):
            self.machines[machine].shelf.partial.removeValue(forKey: id)
            if let failure = self.diskFailure(machine) { return self.fail(failure, &mover, on: machine) }
            guard shelf.complete[id] == nil else { return self.fail(.conflict, "it is here already", &mover, on: machine) }
            self.machines[machine].shelf.partial[id] = (row.size, Content(stamp: 0, count: 0))
            self.tell(.began, id, on: machine)
            if row.kind == .directory { self.tell(.listed(Int(clamping: row.size)), id, on: machine) }
        case .settle(let digest): self.settle(digest, &mover, on: machine)
        case .checkRoom, .receiveData, .receiveBody, .place, .removeContent, .pace, .look, .stop, .discard: break
        }
    }

    private static let zeros = ByteBuffer(repeating: 0, count: WireLimits.chunkData)

    private mutating func sendChunks(of row: Resource, from start: UInt64, upTo end: UInt64, on link: LinkID) {
        var offset = start
        while offset < end, let piece = Self.zeros.getSlice(at: 0, length: Int(min(UInt64(WireLimits.chunkData), end - offset))) {
            self.send([.resource(.chunk(ResourceChunk(id: row.id, offset: offset, data: piece)))], on: link)
            offset += UInt64(piece.readableBytes)
        }
    }

    private mutating func settle(_ digest: ResourceDigest?, _ mover: inout TransferMover, on machine: Int) {
        let id = mover.row.id
        guard let (size, content) = self.machines[machine].shelf.partial[id] else {
            return self.fail(.notFound, "there is none", &mover, on: machine)
        }
        if let failure = self.diskFailure(machine) { return self.fail(failure, &mover, on: machine) }
        // A device need not give a digest.
        let isUnchecked = digest == nil && mover.row.peerID.kind == .localsend
        guard content.count == size, content.digest == digest?.bytes || size == 0 || isUnchecked else {
            return self.fail(.digestMismatch, "the received bytes differ from the sent ones", &mover, on: machine)
        }
        self.checkAttributes(of: content, mover, on: machine)
        self.machines[machine].shelf.partial.removeValue(forKey: id)
        self.machines[machine].shelf.complete[id] = content
        self.tell(.settled("x"), id, on: machine)
    }

    // MARK: Receiving

    /// Receives bytes like `Node.received`.
    mutating func received(_ chunk: ResourceChunk, from sender: Int, at machine: Int) {
        // A hostile sender's bytes have an unknown stamp.
        let stamp = self.machines[sender].shelf.sent[chunk.id]?.stamp ?? 99
        let content = Content(stamp: stamp, count: UInt64(chunk.data.readableBytes))
        self.order(.write(content, at: chunk.offset), chunk.id, on: machine)
    }

    private mutating func write(_ content: Content, at offset: UInt64, _ mover: inout TransferMover, on machine: Int) {
        let id = mover.row.id
        guard let held = self.machines[machine].shelf.partial[id] else { return self.fail(.notFound, "there is none", &mover, on: machine) }
        if let failure = self.diskFailure(machine) { return self.fail(failure, &mover, on: machine) }
        guard held.content.count == offset, offset + content.count <= held.size else {
            return self.fail(.protocolViolation, "it is out of place", &mover, on: machine)
        }
        self.machines[machine].shelf.partial[id]?.content.append(content.count, of: content.stamp)
        mover.position = offset + content.count
        self.tell(.written(to: mover.position), id, on: machine)
    }

    // MARK: Data connections

    /// The most bytes that are received of a data connection at once.
    private static let piece: UInt64 = 512 * 1024

    private mutating func sendOverData(_ mover: inout TransferMover, from offset: UInt64, on machine: Int) {
        let id = mover.row.id
        guard let content = mover.content, let data = self.machines[machine].data.open[TransferID(id)],
            !self.dataConnections[data].isClosed
        else { return self.tell(.dataSent(to: offset), id, on: machine) }
        mover.position = content.count
        self.counts[.resourcesOverData] += 1
        self.dataConnections[data].content = Content(stamp: content.stamp, count: content.count - min(offset, content.count))
        self.dataConnections[data].isWhole = true
        self.tell(.dataSent(to: content.count), id, on: machine)
        if let other = self.machine(of: mover.row.peerID) { self.stirData(id, on: other) }
    }

    /// Notes that a data connection has bytes to receive.
    mutating func stirData(_ id: ResourceID, on machine: Int) {
        guard let number = self.machines[machine].transfers.current[id] else { return }
        self.clock.plan(.resourceBytes(machine, run: self.machines[machine].run, number), after: .milliseconds(1))
    }

    /// Returns whether the data connection has ended.
    private mutating func receiveData(_ number: Int, _ before: TransferMover, on machine: Int) -> Bool {
        let id = before.row.id
        guard let held = self.machines[machine].shelf.partial[id] else { return true }
        guard let data = self.machines[machine].data.open[TransferID(id)] else {
            self.tell(.dataEnded(at: held.content.count), id, on: machine)
            return true
        }
        self.machines[machine].transfers.movers[number]?.data = data
        self.clock.plan(.resourceBytes(machine, run: self.machines[machine].run, number), after: .milliseconds(1))
        return false
    }

    /// Takes the bytes of its data connection, and notes whether more will come.
    mutating func receiveBytes(_ number: Int, on machine: Int) {
        guard var mover = self.machines[machine].transfers.movers[number] else { return }
        if let body = mover.body { return self.receivePiece(number, mover, body, on: machine) }
        guard let data = mover.data else { return }
        let id = mover.row.id
        if let content = self.dataConnections[data].content, let held = self.machines[machine].shelf.partial[id] {
            // Piece by piece, so that the connection may break in between.
            let piece = min(content.count, Self.piece)
            let rest = content.count - piece
            self.dataConnections[data].content = rest > 0 ? Content(stamp: content.stamp, count: rest) : nil
            if let failure = self.diskFailure(machine) {
                self.fail(failure, &mover, on: machine)
            } else if content.count > held.size - held.content.count {
                self.fail(.tooLarge, "more than was declared", &mover, on: machine)
            } else {
                self.machines[machine].shelf.partial[id]?.content.append(piece, of: content.stamp)
                mover.position = held.content.count + piece
            }
        }
        let hasMore = self.dataConnections[data].content != nil
        let isWhole = self.dataConnections[data].isWhole && !hasMore
        guard self.dataConnections[data].isClosed || isWhole || mover.hasFailed || mover.isStopped else {
            self.machines[machine].transfers.movers[number]?.position = mover.position
            let time = self.diskTime(machine)
            if hasMore { self.clock.plan(.resourceBytes(machine, run: self.machines[machine].run, number), after: time) }
            return
        }
        self.machines[machine].transfers.movers[number]?.data = nil
        let written = self.machines[machine].shelf.partial[id]?.content.count ?? 0
        if !mover.hasFailed {
            if isWhole, written < mover.row.size, !self.dataConnections[data].isClosed {
                self.fail(.protocolViolation, "only \(written) bytes came", &mover, on: machine)
            } else {
                self.tell(.dataEnded(at: written), id, on: machine)
            }
        }
        self.finishOrder(number, mover, on: machine)
    }
}
