internal import EarshotWire

/// The limits of the inbox.
///
/// Unread messages are never dropped: at a limit, the next message is refused. Read messages are pruned by age. They are also bounded by
/// the same count and size, and the oldest are evicted, so that reading a flood cannot fill the disk.
package struct InboxLimits: Sendable, Hashable {
    /// The maximum number of unread messages.
    package var count: Int
    /// The maximum size of unread messages, in bytes, with `EarshotLimits.messageOverhead` added for each.
    package var bytes: UInt64
    /// Whether messages are kept when they are read.
    package var keepsRead: Bool

    /// Creates limits of at least one message and one byte.
    package init(count: Int = 10_000, bytes: UInt64 = 256 * 1024 * 1024, keepsRead: Bool = true) {
        self.keepsRead = keepsRead
        self.count = max(count, 1)
        self.bytes = max(bytes, 1)
    }

    /// The maximum number of messages from one sender: all but a part for the others, so that a sender cannot block them. A very small
    /// inbox is not divided.
    package var countPerSender: Int { self.count - self.count / Self.partForOthers }
    /// The maximum size of messages from one sender, in bytes; see `countPerSender`.
    package var bytesPerSender: UInt64 { self.bytes - self.bytes / UInt64(Self.partForOthers) }

    /// The divisor for the part of the messages, and of the bytes, that is reserved for other senders.
    package static let partForOthers = 64

    /// The maximum number of remembered ids of one sender after their messages are deleted. The oldest are evicted, because a sender
    /// repeats only messages in flight.
    package static let rememberedPerSender = 65_536
    /// How long ids are remembered, in seconds: a day longer than the longest time after which a message is sent again.
    package static let rememberedSeconds: Int64 = EarshotLimits.outboxAgeLimit.components.seconds + 86_400
}

/// The usage of the inbox as running totals, so that a delivery does not have to count.
struct InboxUsage: Equatable {
    struct Total: Equatable {
        var count = 0
        var bytes: UInt64 = 0

        mutating func add(_ weight: UInt64, count: Int = 1) {
            self.count += count
            self.bytes += weight
        }

        mutating func remove(_ weight: UInt64) {
            self.count = max(self.count - 1, 0)
            self.bytes -= min(weight, self.bytes)
        }
    }

    var unread = Total()
    var read = Total()
    var unreadBySender: [PeerID: Total] = [:]

    /// Whether another unread message of this weight from the sender is within the limits.
    func hasRoom(for weight: UInt64, from sender: PeerID, limits: InboxLimits) -> Bool {
        let own = self.unreadBySender[sender] ?? Total()
        return self.unread.count < limits.count && own.count < limits.countPerSender
            && self.unread.bytes + weight <= limits.bytes && own.bytes + weight <= limits.bytesPerSender
    }

    mutating func delivered(_ weight: UInt64, from sender: PeerID) {
        self.unread.add(weight)
        self.unreadBySender[sender, default: Total()].add(weight)
    }

    mutating func wasRead(_ weight: UInt64, from sender: PeerID) {
        self.unread.remove(weight)
        self.read.add(weight)
        guard var own = self.unreadBySender[sender] else { return }
        own.remove(weight)
        self.unreadBySender[sender] = own.count > 0 ? own : nil
    }

    /// Whether the read messages exceed the limits.
    func hasExcess(limits: InboxLimits) -> Bool {
        limits.keepsRead ? self.read.count > limits.count || self.read.bytes > limits.bytes : self.read.count > 0
    }
}
