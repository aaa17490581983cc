extension ConnectionStateMachine {
    /// The last sequence of reliable messages in each session, and in each group: what is said in one does not wait for another.
    ///
    /// Of more sessions than two peers can have at once the oldest is forgotten: a peer that names many gains nothing but disorder of its own.
    struct MessageOrder: Sendable {
        /// Groups, the session, and one that has taken its place.
        static let remembered = WireLimits.groupsPerFrame + 2

        /// Mostly the next message is in the same one.
        private var current: (session: SessionID, last: UInt64)?
        private var others: [(session: SessionID, last: UInt64)] = []

        func last(in session: SessionID) -> UInt64? {
            if let current, current.session == session { return current.last }
            return self.others.first { $0.session == session }?.last
        }

        mutating func note(_ sequence: UInt64, in session: SessionID) {
            if let current, current.session != session {
                self.others.removeAll { $0.session == session }
                self.others.append(current)
                if self.others.count >= Self.remembered { self.others.removeFirst() }
            }
            self.current = (session, sequence)
        }
    }
}
