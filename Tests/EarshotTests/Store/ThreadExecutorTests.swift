import Foundation
import Testing

@testable import Earshot

/// The scheduling of threads for bulk work.
@Suite struct ThreadExecutorTests {
    /// Returns the kernel's time slice of the calling thread, in nanoseconds; `nil` if the kernel does not report it.
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

    /// Threads have their own slice since Linux 6.12. Before that, the request has no effect.
    @Test func bulkTakesLongTurnsAndNothingElseDoes() async throws {
        let usual = try await self.slice(isBulk: false)
        let version = ProcessInfo.processInfo.operatingSystemVersion
        let hasSlices = (version.majorVersion, version.minorVersion) >= (6, 12)
        #expect(try await self.slice(isBulk: true) == (hasSlices ? 100_000_000 : usual))
        #expect(usual != 100_000_000)
    }

    /// Work that blocks must not occupy a thread of the pool, also if the work never suspends.
    @Test func blockingWorkHasItsThread() async throws {
        let names = try await ThreadExecutor.blocking("earshot-test") {
            let first = Self.threadName
            await Task.yield()
            return [first, Self.threadName]
        }
        #expect(names == ["earshot-test", "earshot-test"])
        #expect(try await ThreadExecutor.blocking("earshot-test") { Self.threadName } == "earshot-test")
    }

    @Test func blockingWorkIsCancelledWithItsCaller() async throws {
        let (started, start) = AsyncStream.makeStream(of: Void.self)
        let caller = Task {
            try await ThreadExecutor.blocking("earshot-test") {
                start.finish()
                try await Task.sleep(for: .seconds(3600))
            }
        }
        for await _ in started {}
        caller.cancel()
        await #expect(throws: CancellationError.self) { try await caller.value }
    }

    private static var threadName: String? {
        (try? String(contentsOfFile: "/proc/thread-self/comm", encoding: .utf8))?.trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
