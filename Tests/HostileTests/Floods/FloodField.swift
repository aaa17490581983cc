import EarshotWire
import Foundation
import Synchronization
import Testing

/// The daemon's counts, from its status.
struct FloodCounts: Decodable, Hashable {
    let peers: Int
    let connected: Int
    let sessions: Int
    let invitations: Int
    let transfers: Int

    private struct Status: Decodable { let counts: FloodCounts }

    static func of(_ daemon: VictimDaemon) throws -> FloodCounts { try daemon.decoded(Status.self, at: "/v1/status").counts }

    /// Returns the number of open streams, which the status does not contain.
    static func openStreams(of daemon: VictimDaemon) throws -> Int {
        struct List: Decodable { let streams: [Row] }
        struct Row: Decodable { let state: String }
        return try daemon.decoded(List.self, at: "/v1/streams").streams.count { $0.state != "closed" }
    }
}

/// A daemon with its flooding peers and its watch.
final class FloodField {
    static let settings = "[messages]\ninbox_limit = 10000000\ninbox_size = 64G\n"

    let daemon: VictimDaemon
    let watch: FloodWatch
    let flood: Flood
    private let before: FloodCounts

    init(_ stand: FloodStand, _ connections: Int) throws {
        let policy = "[invitations]\nfrom_unknown = \(stand.joins ? "accept" : "ask")\n"
        self.daemon = try VictimDaemon(settings: Self.settings + policy, watchdog: FloodBounds.watchdog)
        self.watch = try FloodWatch(self.daemon)
        self.flood = Flood(connections, stand, port: self.daemon.port, try Self.template(.alone(.ping)))
        _ = self.watch.result(of: "quiet") { usleep(100_000) }
        self.before = try FloodCounts.of(self.daemon)
    }

    deinit { self.watch.stop() }

    private static let templates = Mutex<[String: FloodTemplate]>([:])

    /// Returns the template of a kind, which all tests share.
    static func template(_ kind: FloodKind) throws -> FloodTemplate {
        try self.templates.withLock { made in
            if let known = made[kind.description] { return known }
            let template = try FloodTemplate(kind, try FloodWords())
            made[kind.description] = template
            return template
        }
    }

    /// Floods for that time, and returns the result.
    func run(_ kind: FloodKind, for time: Duration) throws -> FloodResult {
        let template = try Self.template(kind)
        let (sent, connections) = (self.flood.sent, self.flood.connections)
        var late = 0
        var result = try self.watch.result(of: kind.description) {
            try self.flood.run(template, for: time) { self.watch.isBeyondAll || !self.daemon.isAlive }
            late = self.flood.late
            // Bytes in the kernel's buffers are discarded with the connections, so that the next kind is judged alone.
            if case .alone = kind { self.flood.stop(abruptly: true) }
        }
        (result.sent, result.connections) = (self.flood.sent - sent, self.flood.connections - connections)
        (result.late, result.peers) = (late, self.flood.count)
        return result
    }

    /// Ends the floods, and returns the resources that the daemon has not released. At full scale it must release everything, within its
    /// timeouts (15 s of grace for a peer, 30 s for an invitation whose inviter has gone). Otherwise it must release what belongs to
    /// connections and sessions. Bytes in the kernel's buffers are still processed, and free memory returns to the system a second later.
    func end() throws -> [String] {
        var faults: [String] = []
        self.flood.stop()
        try self.flood.leave()
        let began = ContinuousClock.now
        let deadline = began + .seconds(60)
        var after = try FloodCounts.of(self.daemon)
        while !self.isGivenBack(after) || self.memoryKept > FloodBounds.memoryKept, ContinuousClock.now < deadline {
            usleep(50_000)
            after = try FloodCounts.of(self.daemon)
        }
        if !self.isGivenBack(after) { faults.append("\(after) where there were \(self.before)") }
        let streams = try FloodCounts.openStreams(of: self.daemon)
        if streams > 0 { faults.append("\(streams) streams are open") }
        let kept = self.memoryKept
        print("flood: given back \(ContinuousClock.now - began) after its end, memory keeps +\(kept >> 10) KiB")
        if kept > FloodBounds.memoryKept { faults.append("memory keeps +\(kept >> 20) MiB") }
        if let pause = self.daemon.manager?.longestPause, pause > .seconds(FloodBounds.watchdog) {
            faults.append("the watchdog was not fed for \(pause)")
        }
        if !self.daemon.isAlive { faults.append("the daemon has ended") }
        return faults
    }

    private func isGivenBack(_ after: FloodCounts) -> Bool {
        guard !Scale.isFull else { return after == self.before }
        return after.connected == self.before.connected && after.sessions == self.before.sessions
            && after.transfers == self.before.transfers
    }

    /// The growth of memory over the state before the floods, in bytes.
    private var memoryKept: Int { FloodWatch.memory(of: self.daemon.pid) - self.watch.baseline }
}
