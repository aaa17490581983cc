import Foundation
import Testing

/// All packets on a host's network, captured by `tcpdump`.
final class Capture: Sendable {
    private let process: Running
    private let path: String

    /// Starts, and returns once packets are captured. Data and headers of every TCP segment are kept whole.
    init(on host: String, in laboratory: Laboratory) async throws {
        self.path = "\(laboratory.place)/capture-\(host)"
        // Runs as this user, because another user may not write there, and writes each packet at once.
        self.process = try laboratory.start(
            on: host, ["tcpdump", "-Z", "root", "-i", "eth0", "-s", "0", "-B", "65536", "-U", "-n", "-w", self.path, "tcp"])
        try await eventually("tcpdump listens") { self.process.errorsSoFar().contains("listening on") }
    }

    /// Waits until the text has been captured.
    func awaitSight(of marker: String) async throws {
        try await eventually("\(marker) is captured") { Self.holds(self.bytes(), marker) }
    }

    static func holds(_ bytes: Data, _ marker: String) -> Bool { bytes.range(of: Data(marker.utf8)) != nil }

    private func bytes() -> Data { FileManager.default.contents(atPath: self.path) ?? Data() }

    /// Stops the capture, and fails if a packet was missed.
    func stop() async throws -> Data {
        self.process.signal(SIGINT)
        let outcome = await self.process.outcome()
        try #require(outcome.errors.contains("\n0 packets dropped by kernel"), "the capture is not whole: \(outcome)")
        return self.bytes()
    }
}
