import Foundation
import Testing

@testable import Earshot

/// How the threads that move bulk are scheduled.
@Suite struct ThreadExecutorTests {
    /// What the kernel says of the calling thread's slice, in nanoseconds; `nil` where it does not say.
    private func slice() -> Int? {
        guard let text = try? String(contentsOfFile: "/proc/thread-self/sched", encoding: .utf8),
            let line = text.split(separator: "\n").first(where: { $0.hasPrefix("se.slice") })
        else { return nil }
        return line.split(separator: ":").last.flatMap { Int($0.filter { !$0.isWhitespace }) }
    }

    private func slice(isBulk: Bool) async throws -> Int? {
        let executor = try ThreadExecutor(name: "earshot-test", isBulk: isBulk)
        defer { executor.stop() }
        return await withCheckedContinuation { continuation in executor.run { continuation.resume(returning: self.slice()) } }
    }

    /// A thread has a slice of its own from Linux 6.12 on; before, asking for one changes nothing.
    @Test func bulkTakesLongTurnsAndNothingElseDoes() async throws {
        let usual = try await self.slice(isBulk: false)
        let version = ProcessInfo.processInfo.operatingSystemVersion
        let hasSlices = (version.majorVersion, version.minorVersion) >= (6, 12)
        #expect(try await self.slice(isBulk: true) == (hasSlices ? 100_000_000 : usual))
        #expect(usual != 100_000_000)
    }
}
