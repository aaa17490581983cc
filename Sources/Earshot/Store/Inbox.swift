internal import EarshotWire

/// What the inbox may hold.
///
/// Unread messages are never dropped: when they reach a limit, the next one is refused. Read ones are pruned by age, and beyond that the
/// same count and bytes bound them: the oldest give way, so that reading a flood cannot fill the disk with history.
package struct InboxLimits: Sendable, Hashable {
    /// Unread messages.
    package var count: Int
    /// Their bytes, each with `EarshotLimits.messageOverhead` added.
    package var bytes: UInt64
    /// Whether messages stay when they are read.
    package var keepsRead: Bool

    /// Limits of at least one message and one byte.
    package init(count: Int = 10_000, bytes: UInt64 = 256 * 1024 * 1024, keepsRead: Bool = true) {
        self.keepsRead = keepsRead
        self.count = max(count, 1)
        self.bytes = max(bytes, 1)
    }

    /// What one sender may hold: all but a part that stays for the others, so that it cannot lock them out. An inbox too small to
    /// divide is not divided.
    package var countPerSender: Int { self.count - self.count / Self.partForOthers }
    /// See `countPerSender`.
    package var bytesPerSender: UInt64 { self.bytes - self.bytes / UInt64(Self.partForOthers) }

    /// One in this many messages, and bytes, is kept for other senders.
    package static let partForOthers = 64

    /// Ids of one sender that are remembered after their messages went; the oldest give way. A sender repeats only what is in flight.
    package static let rememberedPerSender = 65_536
    /// How long they are remembered, in seconds: a day longer than the longest time after which a message is sent again.
    package static let rememberedSeconds: Int64 = EarshotLimits.outboxAgeLimit.components.seconds + 86_400
}

/// How full the inbox is: running totals, so that a delivery does not have to count.
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

    /// Whether one more unread message of that weight from that sender is within the limits.
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

    /// Whether the history of read messages is longer than the limits let it be.
    func hasExcess(limits: InboxLimits) -> Bool {
        limits.keepsRead ? self.read.count > limits.count || self.read.bytes > limits.bytes : self.read.count > 0
    }
}
