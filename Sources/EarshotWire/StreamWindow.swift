/// Where a stream that was accepted stands: which bytes may come next, and over which connection. Both sides keep the same one.
///
/// The bytes begin on the control connection. The sender may ask once for a data connection, and once it stands move there, at an offset.
/// The receiver may call them back, once, to the first byte that it lacks: that connection is lost, or never stood. From then on they stay.
struct StreamWindow: Sendable, Hashable {
    private enum Route: Sendable, Hashable {
        /// On the control connection. `mayAsk` until the sender has asked for another one.
        case control(mayAsk: Bool)
        /// On the control connection still, while both sides open a data connection.
        case asked
        /// On a data connection, from `next` on.
        case data
        /// Called back to this byte; the sender has not said that it knows. Where it `mayEnd`, its end may be under way.
        case calledBack(to: UInt64, mayEnd: Bool)
    }

    /// How a `stream-end` fits.
    enum End: Sendable, Hashable {
        case ends
        /// It was under way when the bytes were called back, and comes again.
        case late(StreamWindow)
        case wrong
    }

    /// The first byte that has not come, or gone, over the control connection.
    private(set) var next: UInt64 = 0
    private(set) var limit: UInt64
    private let first: UInt64
    private var route = Route.control(mayAsk: true)

    init(first limit: UInt64) {
        self.limit = limit
        self.first = limit
    }

    /// The window after `count` more bytes on the control connection; `nil` where they are too many, or go another way.
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

    /// The window with another limit; `nil` where it is lower.
    func raised(to limit: UInt64) -> StreamWindow? {
        guard limit >= self.limit else { return nil }
        var raised = self
        raised.limit = limit
        return raised
    }

    /// The sender, which is at `offset`, asks for a data connection; `nil` where it may not.
    func asked(at offset: UInt64) -> StreamWindow? {
        guard self.route == .control(mayAsk: true), offset == self.next else { return nil }
        var asked = self
        asked.route = .asked
        return asked
    }

    /// The sender goes on at `offset` over the other connection: the data connection, or having been called back the control connection;
    /// `nil` where it may not.
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

    /// The receiver calls the bytes back from the data connection, to one that it has not said to be taken; `nil` where it may not.
    ///
    /// A limit is the first one and what was taken, so that the sender knows what it need not keep.
    func calledBack(to offset: UInt64, hasEnded: Bool) -> StreamWindow? {
        guard self.route == .data, offset >= max(self.next, self.limit - self.first), offset <= self.limit else { return nil }
        var back = self
        back.route = .calledBack(to: offset, mayEnd: !hasEnded)
        return back
    }

    /// Whether a stream of this size may end here.
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
