import EarshotWire

/// The read receipts for messages that were read here: the pending ones, the notes of senders that know of a reading, and the receipts of
/// earlier runs that are being loaded from disk.
struct ReadReceipts: Sendable {
    /// The step after a sender's notes.
    enum NoteAction: Equatable {
        case nothing
        /// The gathered notes are written after a while.
        case scheduleWrite
        /// Enough notes are gathered for a write.
        case write
    }

    private var unnoted = UnnotedReads()
    private var notes = ReceiptNotes()
    /// Whether a write of the gathered notes is scheduled.
    private(set) var isNoting = false
    /// The peers whose receipts are being loaded, each with the notes that were not committed when the load began.
    private var loads: [PeerID: ReceiptNotes] = [:]

    /// The number of gathered notes.
    var gatheringNotes: Int { self.notes.count }
    /// The number of pending receipts for all peers.
    var count: Int { self.unnoted.count }

    /// Returns the pending receipts for a peer, the oldest first.
    func all(of peer: PeerID) -> [MessageID] { self.unnoted.all(of: peer) }

    mutating func insert(_ ids: [MessageID], of peer: PeerID) { self.unnoted.insert(ids, of: peer) }

    /// Whether the receipts that earlier runs of the node left on disk are loaded.
    func isLoaded(_ peer: PeerID) -> Bool { self.unnoted.isLoaded(peer) }

    /// Begins to load a peer's receipts. Returns `false` if they are being loaded already.
    mutating func beginLoading(_ peer: PeerID) -> Bool {
        guard self.loads[peer] == nil else { return false }
        // Notes that came before this query may or may not be on disk when the store answers.
        self.loads[peer] = self.notes
        return true
    }

    /// Adds the loaded receipts that the peer has not noted; `nil` if they could not be read. Returns `false` if none were being loaded.
    mutating func loaded(_ ids: [MessageID]?, of peer: PeerID) -> Bool {
        guard let noted = self.loads.removeValue(forKey: peer) else { return false }
        if let ids { self.unnoted.load(ids.filter { !noted.contains($0, by: peer) && !self.notes.contains($0, by: peer) }, of: peer) }
        return true
    }

    /// Gathers a sender's notes, and drops the receipts. Ignores ids that the peer invented.
    mutating func noted(_ ids: [MessageID], by peer: PeerID) -> NoteAction {
        let ids = self.unnoted.noted(ids, by: peer)
        guard !ids.isEmpty else { return .nothing }
        self.notes.add(ids, by: peer)
        guard self.notes.count < WireLimits.receiptsPerFrame else { return .write }
        guard !self.isNoting else { return .nothing }
        self.isNoting = true
        return .scheduleWrite
    }

    /// Returns the gathered notes as one write. `notesSettled` ends the write.
    mutating func takeNotes() -> [OutboxChange] {
        self.isNoting = false
        return self.notes.take().map { .noted(Array($0.value), by: $0.key) }
    }

    /// Ends the oldest write of notes, whether it succeeded or not.
    mutating func notesSettled() { self.notes.settled() }

    /// Removes the receipts for a peer whose session has ended.
    mutating func removeAll(of peer: PeerID) { self.unnoted.removeAll(of: peer) }
}
