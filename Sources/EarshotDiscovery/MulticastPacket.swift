/// A check of multicast DNS packets (RFC 1035 section 4.1, RFC 6762 section 18) for content that must not reach libavahi-core.
enum MulticastPacket {
    private static let headerBytes = 12
    private static let cname: UInt16 = 5

    /// Whether the packet is well-formed to its last record and contains no alias.
    ///
    /// An alias (CNAME) of a browsed name makes libavahi-core look for its target under the same browser. The result ends the process by an
    /// assertion, or an endless recursion (avahi issues 501, 678 and 683, not fixed in Debian 12): a single packet of anyone on the network
    /// suffices. No record of DNS-SD is an alias, nor may a service's record point to one (RFC 2782).
    static func isHarmless(_ packet: ArraySlice<UInt8>) -> Bool {
        guard packet.count >= self.headerBytes else { return false }
        var rest = packet.dropFirst(4)
        var counts: [UInt16] = []
        for _ in 0..<4 {
            guard let count = self.takeNumber(from: &rest) else { return false }
            counts.append(count)
        }
        for _ in 0..<counts[0] {
            guard self.skipName(in: &rest), self.skip(4, in: &rest) else { return false }
        }
        // The answers, authorities and additional records.
        for _ in 0..<counts[1...].reduce(0, { $0 + Int($1) }) {
            guard self.skipName(in: &rest), let type = self.takeNumber(from: &rest), type != self.cname,
                // Skips the class and the time to live.
                self.skip(6, in: &rest), let length = self.takeNumber(from: &rest), self.skip(Int(length), in: &rest)
            else { return false }
        }
        return true
    }

    /// Skips labels up to the root or a pointer, which ends a name.
    private static func skipName(in rest: inout ArraySlice<UInt8>) -> Bool {
        while let length = rest.popFirst() {
            switch length >> 6 {
            case 0b00:
                if length == 0 { return true }
                guard self.skip(Int(length), in: &rest) else { return false }
            case 0b11: return self.skip(1, in: &rest)
            default: return false
            }
        }
        return false
    }

    private static func takeNumber(from rest: inout ArraySlice<UInt8>) -> UInt16? {
        guard let high = rest.popFirst(), let low = rest.popFirst() else { return nil }
        return UInt16(high) << 8 | UInt16(low)
    }

    private static func skip(_ count: Int, in rest: inout ArraySlice<UInt8>) -> Bool {
        guard rest.count >= count else { return false }
        rest = rest.dropFirst(count)
        return true
    }
}
