import Crypto
import EarshotWire
import Glibc

/// Many peers on one thread, which all send as fast as their victim reads.
///
/// One thread only, because the victim shares the processors with it. A remote attacker would leave both processors to the victim.
final class Flood {
    private let peers: [FloodPeer]
    private let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 * 1024, alignment: 16)

    /// Creates peers in plaintext, each with its own key. They connect when they are told to run.
    init(_ count: Int, _ stand: FloodStand, port: UInt16, _ template: FloodTemplate) {
        self.peers = (0..<count).map { FloodPeer($0, stand, port: port, over: .plaintext, key: P256.Signing.PrivateKey(), template) }
    }

    /// Creates one peer over TLS.
    init(_ stand: FloodStand, through tunnel: TLSTunnel, _ template: FloodTemplate) {
        self.peers = [FloodPeer(0, stand, port: tunnel.port, over: .tls, key: tunnel.key, template)]
    }

    deinit { self.scratch.deallocate() }

    var sent: Int { self.peers.reduce(0) { $0 + $1.sent } }
    var connections: Int { self.peers.reduce(0) { $0 + $1.connections } }
    var count: Int { self.peers.count }
    /// The number of peers that do not flood with the latest template yet.
    var late: Int { self.peers.count { !$0.hasBegun } }

    /// Lets every `share`th peer read nothing.
    func deafen(every share: Int) {
        for (number, peer) in self.peers.enumerated() where number % share == 0 { peer.isDeaf = true }
    }

    /// The most time until all peers flood.
    private static let beginning: Duration = .seconds(5)

    /// Floods with the template for that time, counted from when every peer floods, or until `isEnough`, which is called a hundred times
    /// per second.
    func run(_ template: FloodTemplate, for time: Duration, until isEnough: () -> Bool = { false }) throws {
        for peer in self.peers { peer.load(template) }
        var end = ContinuousClock.now + Self.beginning + time
        var hasBegun = false
        var asked = ContinuousClock.now
        var polls: [pollfd] = []
        while ContinuousClock.now < end {
            if !hasBegun, self.peers.allSatisfy(\.hasBegun) {
                hasBegun = true
                end = ContinuousClock.now + time
            }
            for peer in self.peers where peer.wantsConnection { try peer.connect() }
            polls.removeAll(keepingCapacity: true)
            for peer in self.peers { polls.append(pollfd(fd: peer.descriptor, events: peer.events, revents: 0)) }
            guard poll(&polls, nfds_t(polls.count), 10) >= 0 else { continue }
            for (peer, answer) in zip(self.peers, polls) where answer.revents != 0 {
                if Int32(answer.revents) & (POLLIN | POLLHUP | POLLERR) != 0 {
                    // Its bytes cannot be parsed if its last frame is truncated.
                    do { try peer.readable(self.scratch) } catch { peer.close() }
                }
                if !peer.isClosed, Int32(answer.revents) & POLLOUT != 0 { peer.writable() }
            }
            guard ContinuousClock.now - asked > .milliseconds(10) else { continue }
            asked = .now
            if isEnough() { return }
        }
    }

    /// Closes every connection; with `abruptly`, unread bytes are discarded.
    func stop(abruptly: Bool = false) { for peer in self.peers { peer.close(abrupt: abruptly) } }

    /// Ends every session.
    func leave() throws { for peer in self.peers { try peer.leave() } }
}
