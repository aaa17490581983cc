package import EarshotWire
import Synchronization

/// What one peer makes this machine hold: its frames until they are dealt with, messages and pieces of resources until they are on disk,
/// and what its frames have led to (store work, jobs, timers), each of which holds a ``Charge`` until it is done.
///
/// An account belongs to a key and not to a connection, so that a peer that comes back on a new connection brings along what it still
/// owes. It is what stops reading: a connection whose peer's account is full hands nothing on, and TCP slows the peer down.
package final class PeerAccount: Sendable {
    private struct State {
        var bytes = 0
        /// Connections that wait for room, each to be called once.
        var waiters: [@Sendable () -> Void] = []
    }

    private let peer: PeerID
    private let accounts: PeerAccounts
    private let state = Mutex(State())

    fileprivate init(of peer: PeerID, in accounts: PeerAccounts) {
        self.peer = peer
        self.accounts = accounts
    }

    deinit { self.accounts.forget(self.peer) }

    /// What is charged now, in bytes.
    package var bytes: Int { self.state.withLock { $0.bytes } }

    /// Charges the peer; what is charged must be given back.
    package func charge(_ bytes: Int) {
        self.state.withLock { $0.bytes += bytes }
        self.accounts.charge(bytes)
    }

    /// What was charged is dealt with.
    package func giveBack(_ bytes: Int) {
        self.accounts.giveBack(bytes)
        let waiters = self.state.withLock { state in
            state.bytes -= bytes
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter() }
    }

    /// Whether more may be charged.
    func hasRoom(isMember: Bool) -> Bool { self.bytes < self.limit(isMember: isMember) }

    /// Has `resume` called once something was given back; `false` where there is room already.
    func waitForRoom(isMember: Bool, _ resume: @escaping @Sendable () -> Void) -> Bool {
        let limit = self.limit(isMember: isMember)
        return self.state.withLock { state in
            guard state.bytes >= limit else { return false }
            state.waiters.append(resume)
            return true
        }
    }

    private func limit(isMember: Bool) -> Int {
        guard isMember else { return EarshotLimits.strangersUnprocessedBytes }
        return self.accounts.isCrowded ? EarshotLimits.crowdedUnprocessedBytes : EarshotLimits.unprocessedBytes
    }
}

/// The accounts of all peers that owe something or are connected.
package final class PeerAccounts: Sendable {
    private struct Entry: Sendable {
        weak let account: PeerAccount?
    }

    /// What all of them owe together, in bytes.
    private let total = Atomic(0)
    /// What waits to be written to all of them, in bytes.
    private let unwritten = Atomic(0)
    /// Whether it has been much since it was last nearly nothing.
    private let wasMuch = Atomic(false)
    private let entries = Mutex<[PeerID: Entry]>([:])
    /// Called when nearly nothing is owed any more, after much was.
    private let calmed: @Sendable () -> Void

    package init(calmed: @escaping @Sendable () -> Void = {}) {
        self.calmed = calmed
    }

    fileprivate func charge(_ bytes: Int) {
        let total = self.total.add(bytes, ordering: .relaxed).newValue
        if total >= EarshotLimits.muchUnprocessedBytes { self.wasMuch.store(true, ordering: .relaxed) }
    }

    fileprivate func giveBack(_ bytes: Int) {
        let total = self.total.subtract(bytes, ordering: .relaxed).newValue
        guard total < EarshotLimits.muchUnprocessedBytes / 16, self.wasMuch.exchange(false, ordering: .relaxed) else { return }
        self.calmed()
    }

    /// What all peers owe together, in bytes.
    package var bytes: Int { self.total.load(ordering: .relaxed) }

    /// How many peers have an account.
    package var count: Int { self.entries.withLock { $0.count } }

    /// The peer's account: the one that there is, or a new one.
    package func account(of peer: PeerID) -> PeerAccount {
        // Released outside the lock: the last reference to an account takes its entry out.
        var account: PeerAccount?
        self.entries.withLock { entries in
            account = entries[peer]?.account
            guard account == nil else { return }
            let new = PeerAccount(of: peer, in: self)
            entries[peer] = Entry(account: new)
            account = new
        }
        return account ?? PeerAccount(of: peer, in: self)
    }

    fileprivate func forget(_ peer: PeerID) {
        // Released outside the lock, as above.
        var successor: PeerAccount?
        self.entries.withLock { entries in
            successor = entries[peer]?.account
            // The peer may have come back meanwhile, with another one.
            if successor == nil { entries[peer] = nil }
        }
    }

    /// Takes down bytes that have arrived and are no whole frame yet, or not any more. They are no work of the node's yet, and nothing
    /// waits for them.
    func noteUndecoded(_ change: Int) {
        if change > 0 { self.charge(change) } else if change < 0 { self.giveBack(-change) }
    }

    /// Whether all together hold as much as they may.
    var isCrowded: Bool { self.bytes >= EarshotLimits.allUnprocessedBytes }

    /// Takes down answers that wait to be written, or do not any more.
    func noteUnwritten(_ change: Int) {
        let total = self.unwritten.add(change, ordering: .relaxed).newValue
        if total >= EarshotLimits.muchUnprocessedBytes { self.wasMuch.store(true, ordering: .relaxed) }
    }

    /// How much may wait to be written to one peer for it to be read, in bytes.
    func unwrittenLimit(isMember: Bool) -> Int {
        guard self.unwritten.load(ordering: .relaxed) >= EarshotLimits.allUnwrittenBytes else { return EarshotLimits.unwrittenBytes }
        return isMember ? EarshotLimits.crowdedMemberUnwrittenBytes : EarshotLimits.crowdedUnwrittenBytes
    }
}

/// What a peer is charged for work that its frame has caused (a transaction, a timer, a task), given back with the last reference to this:
/// the work carries it, so that it can be neither forgotten nor given back twice.
package final class Charge: Sendable {
    let account: PeerAccount
    private let bytes: Int

    package init(_ bytes: Int, to account: PeerAccount) {
        self.account = account
        self.bytes = bytes
        account.charge(bytes)
    }

    deinit { self.account.giveBack(self.bytes) }
}
