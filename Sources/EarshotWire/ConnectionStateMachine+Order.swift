extension ConnectionStateMachine {
    /// The last sequence of reliable messages in each session, and in each group. The sessions are independent of each other.
    ///
    /// Beyond the number of sessions that two peers can have at once, the oldest is evicted. A peer that names many sessions only disorders
    /// its own messages.
    struct MessageOrder: Sendable {
        /// The groups, the session, and its successor.
        static let remembered = WireLimits.groupsPerFrame + 2

        /// The session of the last message, which the next message usually shares.
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
