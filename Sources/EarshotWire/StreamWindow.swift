/// The position of an accepted stream: which bytes may come next, and over which connection. Both sides keep the same state.
///
/// The bytes begin on the control connection. The sender may ask once for a data connection and, once it is established, move there at an
/// offset. If that connection is lost, or was never established, the receiver may call the bytes back once, to the first byte that it
/// lacks. From then on they stay on the control connection.
struct StreamWindow: Sendable, Hashable {
    private enum Route: Sendable, Hashable {
        /// On the control connection. `mayAsk` is `true` until the sender has asked for a data connection.
        case control(mayAsk: Bool)
        /// Still on the control connection, while both sides open a data connection.
        case asked
        /// On a data connection, from `next` on.
        case data
        /// Called back to this byte; the sender has not confirmed yet. If `mayEnd`, its end may be in flight.
        case calledBack(to: UInt64, mayEnd: Bool)
    }

    /// The verdict on a `stream-end`.
    enum End: Sendable, Hashable {
        case ends
        /// The end was in flight when the bytes were called back, and will be repeated.
        case late(StreamWindow)
        case wrong
    }

    /// The first byte that has not been received, or sent, over the control connection.
    private(set) var next: UInt64 = 0
    private(set) var limit: UInt64
    private let first: UInt64
    private var route = Route.control(mayAsk: true)

    init(first limit: UInt64) {
        self.limit = limit
        self.first = limit
    }

    /// Returns the window after `count` more bytes on the control connection; `nil` if they are too many, or take another route.
    func moved(by count: UInt64) -> StreamWindow? {
        switch self.route {
        case .control, .asked: break
        case .data, .calledBack: return nil
        }
        let (end, overflow) = self.next.addingReportingOverflow(count)
        guard !overflow, end <= self.limit else { return nil }
        var moved = self
        moved.next = end
        return moved
    }

    /// Returns the window with another limit; `nil` if that is lower.
    func raised(to limit: UInt64) -> StreamWindow? {
        guard limit >= self.limit else { return nil }
        var raised = self
        raised.limit = limit
        return raised
    }

    /// Returns the window after the sender, at `offset`, has asked for a data connection; `nil` if it may not ask.
    func asked(at offset: UInt64) -> StreamWindow? {
        guard self.route == .control(mayAsk: true), offset == self.next else { return nil }
        var asked = self
        asked.route = .asked
        return asked
    }

    /// Returns the window after the sender has switched at `offset`: to the data connection, or after a call back to the control
    /// connection. `nil` if it may not switch.
    func switched(at offset: UInt64) -> StreamWindow? {
        var switched = self
        switch self.route {
        case .asked where offset == self.next: switched.route = .data
        case .calledBack(to: offset, mayEnd: _):
            switched.next = offset
            switched.route = .control(mayAsk: false)
        case .control, .asked, .data, .calledBack: return nil
        }
        return switched
    }

    /// Returns the window after the receiver has called the bytes back from the data connection, to a byte that it has not acknowledged;
    /// `nil` if it may not.
    ///
    /// A limit is the first limit plus the bytes taken, so the sender knows which bytes it need not keep.
    func calledBack(to offset: UInt64, hasEnded: Bool) -> StreamWindow? {
        guard self.route == .data, offset >= max(self.next, self.limit - self.first), offset <= self.limit else { return nil }
        var back = self
        back.route = .calledBack(to: offset, mayEnd: !hasEnded)
        return back
    }

    /// Returns whether a stream of this size may end here.
    func end(of size: UInt64) -> End {
        switch self.route {
        case .control, .asked: return size == self.next ? .ends : .wrong
        case .data: return size >= self.next && size <= self.limit ? .ends : .wrong
        case .calledBack(let offset, mayEnd: true):
            var late = self
            late.route = .calledBack(to: offset, mayEnd: false)
            return .late(late)
        case .calledBack(to: _, mayEnd: false): return .wrong
        }
    }
}
