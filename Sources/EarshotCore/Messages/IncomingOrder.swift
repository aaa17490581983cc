/// The order of a peer's reliable messages in one conversation on the present connection.
struct IncomingOrder: Sendable, Equatable {
    /// Whether a message came: the first one ignores earlier refusals.
    private(set) var hasBegun = false
    /// Whether a message was refused. None may overtake it until a resumed message comes.
    private(set) var isRefusing = false

    /// Notes a message to be delivered. Returns whether earlier refusals do not apply to it.
    mutating func received(isResumed: Bool) -> Bool {
        defer { self.hasBegun = true }
        if isResumed { self.isRefusing = false }
        return isResumed || !self.hasBegun
    }

    mutating func refuse() { self.isRefusing = true }
}
