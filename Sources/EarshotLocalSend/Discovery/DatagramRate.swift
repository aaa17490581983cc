import NIOCore

/// The limit on datagrams that are decoded, in all and for each source address, within windows of one second. A flood costs this machine
/// the reception of its datagrams and no more, and a flood from one address leaves room for the others.
struct DatagramRate {
    private var start = NIODeadline.uptimeNanoseconds(0)
    private var admitted = 0
    private var perOrigin: [[UInt8]: Int] = [:]

    /// Returns whether a datagram is decoded. Refused ones do not count.
    mutating func admit(from origin: [UInt8], at now: NIODeadline) -> Bool {
        if now - self.start >= .seconds(1) {
            self.start = now
            self.admitted = 0
            self.perOrigin.removeAll(keepingCapacity: true)
        }
        let fromOrigin = self.perOrigin[origin, default: 0]
        guard self.admitted < LocalSendLimits.datagramsPerSecond, fromOrigin < LocalSendLimits.datagramsPerSecondAndAddress else {
            return false
        }
        self.admitted += 1
        self.perOrigin[origin] = fromOrigin + 1
        return true
    }
}
