package import EarshotWire
import Synchronization

/// The resources of this machine that one peer uses: its frames until they are handled, messages and pieces of resources until they are on
/// disk, and work that its frames have caused (store work, jobs, timers). Each piece of that work holds a ``Charge`` until it is done.
///
/// An account belongs to a key, not to a connection, so a peer that reconnects keeps its charges. A full account suspends reading: the
/// connection passes no frames on, and TCP slows the peer down.
package final class PeerAccount: Sendable {
    private struct State {
        var bytes = 0
        /// Connections that wait for room. Each is called once.
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

    /// The charged bytes.
    package var bytes: Int { self.state.withLock { $0.bytes } }

    /// Charges the peer. The bytes must be released with ``giveBack(_:)``.
    package func charge(_ bytes: Int) {
        self.state.withLock { $0.bytes += bytes }
        self.accounts.charge(bytes)
    }

    /// Releases charged bytes.
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

    /// Calls `resume` once, after bytes have been released. Returns `false` if there is room already.
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

/// The accounts of all peers that have charges or a connection.
package final class PeerAccounts: Sendable {
    private struct Entry: Sendable {
        weak let account: PeerAccount?
    }

    /// The charges of all peers together, in bytes.
    private let total = Atomic(0)
    /// The replies to all peers that wait to be written, in bytes.
    private let unwritten = Atomic(0)
    /// Whether the total was large since it was last nearly zero.
    private let wasMuch = Atomic(false)
    private let entries = Mutex<[PeerID: Entry]>([:])
    /// Called when the total is nearly zero after it was large.
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

    /// The charges of all peers together, in bytes.
    package var bytes: Int { self.total.load(ordering: .relaxed) }

    /// The number of peers with an account.
    package var count: Int { self.entries.withLock { $0.count } }

    /// Returns the existing or a new account of the peer.
    package func account(of peer: PeerID) -> PeerAccount {
        // Declared here so that it is released outside the lock: the last reference to an account removes its entry.
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
        // Declared here so that it is released outside the lock, as above.
        var successor: PeerAccount?
        self.entries.withLock { entries in
            successor = entries[peer]?.account
            // The peer may have reconnected meanwhile, with a new account.
            if successor == nil { entries[peer] = nil }
        }
    }

    /// Adds a change of the bytes that have arrived but are not yet decoded. They are not yet work of the node, and nothing waits for
    /// their release.
    func noteUndecoded(_ change: Int) {
        if change > 0 { self.charge(change) } else if change < 0 { self.giveBack(-change) }
    }

    /// Whether all charges together have reached their limit.
    var isCrowded: Bool { self.bytes >= EarshotLimits.allUnprocessedBytes }

    /// Adds a change of the reply bytes that wait to be written.
    func noteUnwritten(_ change: Int) {
        let total = self.unwritten.add(change, ordering: .relaxed).newValue
        if total >= EarshotLimits.muchUnprocessedBytes { self.wasMuch.store(true, ordering: .relaxed) }
    }

    /// Returns how many reply bytes may wait for one peer while it is still read.
    func unwrittenLimit(isMember: Bool) -> Int {
        guard self.unwritten.load(ordering: .relaxed) >= EarshotLimits.allUnwrittenBytes else { return EarshotLimits.unwrittenBytes }
        return isMember ? EarshotLimits.crowdedMemberUnwrittenBytes : EarshotLimits.crowdedUnwrittenBytes
    }
}

/// The charge of a peer for work that its frame has caused (a transaction, a timer, a task). The charge is released with the last
/// reference to it. The work holds that reference, so the charge can be neither forgotten nor released twice.
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
