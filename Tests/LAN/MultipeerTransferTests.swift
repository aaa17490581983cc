import Foundation
import Testing

extension LAN {
    /// Streams and resources of `MultipeerConnectivity` between programs, each on its own host. The bytes are derived from the name, and
    /// the receiver compares them.
    @Suite struct MultipeerTransfers {
        private static let program = "multipeer-transfers"
        private static let resourceSize = 16 << 20

        /// Starts programs and waits until they are connected.
        private func together(_ count: Int, _ laboratory: Laboratory, isArchived: Bool = false) async throws -> [TypedProgram] {
            var programs: [TypedProgram] = []
            for number in 1...count {
                try await laboratory.ownHost("peer\(number)", "10.77.0.\(120 + number)")
                let name = "peer\(number)"
                programs.append(try TypedProgram(Self.program, name, on: name, laboratory, isArchived: isArchived))
            }
            for (one, other) in Self.directions(programs) { try await one.has("* \(other.name) is here") }
            return programs
        }

        /// Every pair, in both directions.
        private static func directions(_ programs: [TypedProgram]) -> [(from: TypedProgram, to: TypedProgram)] {
            programs.flatMap { one in programs.filter { $0 !== one }.map { (one, $0) } }
        }

        /// A program that is killed and restarts as the same peer has a new connection: each side sees a loss and one return, and later
        /// transfers reach the new process. Both sides invite, and an invitation may fail while the peer is still announced at its old port.
        @Test(arguments: [3, 8]) func samePeerAgain(_ count: Int) async throws {
            try await Laboratory.run { laboratory in
                var programs = try await self.together(count, laboratory, isArchived: true)
                programs[0].running.signal(SIGKILL)
                let began = ContinuousClock.now
                programs[0] = try TypedProgram(Self.program, "peer1", on: "peer1", laboratory, isArchived: true)
                for program in programs.dropFirst() {
                    try await programs[0].has("* \(program.name) is here")
                    try await program.has("* peer1 is here", times: 2)
                }
                measured("a killed one of \(count) is back as the same peer", ContinuousClock.now - began)
                for program in programs.dropFirst() {
                    try program.type("stream loop-loop-\(program.name) peer1 1000")
                    try await programs[0].has("loop-loop-\(program.name) from \(program.name): 1000 bytes as sent")
                    let told = program.lines.filter { $0.hasPrefix("* peer1") }
                    let changes = told.indices.filter { $0 == 0 || told[$0] != told[$0 - 1] }.map { told[$0] }
                    #expect(changes == ["* peer1 is here", "* peer1 is not here", "* peer1 is here"])
                    let others = program.lines.filter { $0.hasPrefix("* ") && !$0.hasPrefix("* peer1") }
                    #expect(others.count == count - 2, "\(program.lines)")
                }
            }
        }

        /// Streams are written and read with run loops, with blocking threads and with polling threads, all at once and in both directions.
        @Test func streamsArriveInBothDirectionsAtOnce() async throws {
            try await Laboratory.run { laboratory in
                let programs = try await self.together(3, laboratory)
                let ways = ["loop", "thread", "poll"]
                let names = ways.flatMap { written in ways.map { "\(written)-\($0)" } }
                let size = 1_000_000
                let began = ContinuousClock.now
                for (one, other) in Self.directions(programs) {
                    for name in names { try one.type("stream \(name)-\(one.name) \(other.name) \(size)") }
                }
                for (one, other) in Self.directions(programs) {
                    for name in names {
                        try await one.has("\(name)-\(one.name) to \(other.name): \(size) bytes written")
                        try await other.has("\(name)-\(one.name) from \(one.name): \(size) bytes as sent")
                    }
                }
                measured("9 streams of 1 MB from each of 3 hosts to each other", ContinuousClock.now - began)
                // Each program reports each stream once, and nothing else except the present peers.
                for program in programs { #expect(program.lines.count == 2 + 2 * 2 * names.count, "\(program.lines)") }
            }
        }

        /// 16 MiB from each to each, at once. The file that the receiver gets is deleted after the callback.
        @Test func resourcesArriveInBothDirectionsAtOnce() async throws {
            try await Laboratory.run { laboratory in
                let programs = try await self.together(3, laboratory)
                let began = ContinuousClock.now
                for (one, other) in Self.directions(programs) { try one.type("resource of-\(one.name) \(other.name) \(Self.resourceSize)") }
                for (one, other) in Self.directions(programs) {
                    try await one.has("of-\(one.name) to \(other.name): sent")
                    try await one.has("of-\(one.name) to \(other.name): progress rises to 1.0")
                    try await other.has("of-\(one.name) from \(one.name): \(Self.resourceSize) bytes as sent")
                    try await other.has("of-\(one.name) from \(one.name): progress rises to 1.0")
                }
                measured("16 MiB from each of 3 hosts to each other", ContinuousClock.now - began)
                for program in programs {
                    var files: [String] = []
                    try await eventually("\(program.name) was shown two files", instead: { "\(program.lines)" }) {
                        files = program.lines.compactMap { $0.wholeMatch(of: /file .*: (\/.*)/).map { String($0.1) } }
                        return files.count == 2
                    }
                    for file in files { try await eventually("\(file) is gone") { !FileManager.default.fileExists(atPath: file) } }
                }
            }
        }

        /// Transfers cancelled by the sender and by the receiver, in both directions; later transfers arrive.
        @Test(arguments: ["sender", "receiver"]) func eitherSideCancelsAResource(by side: String) async throws {
            try await Laboratory.run { laboratory in
                let programs = try await self.together(2, laboratory)
                // 16 MiB take three seconds, enough time to cancel.
                for program in programs {
                    try await laboratory.lab(
                        "host", "exec", program.name, "--", "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "40mbit", "burst",
                        "64kb", "latency", "200ms")
                }
                for (one, other) in Self.directions(programs) {
                    try one.type("resource \(side)-\(one.name) \(other.name) \(Self.resourceSize)")
                }
                for (one, other) in Self.directions(programs) {
                    let name = "\(side)-\(one.name)"
                    let (canceller, what) = side == "sender" ? (one, "\(name) to \(other.name)") : (other, "\(name) from \(one.name)")
                    try await canceller.has("\(what): cancels it on its way")
                    try await one.has("\(name) to \(other.name): cancelled")
                    try await other.has("\(name) from \(one.name): cancelled, no file")
                    try one.type("resource next-\(one.name) \(other.name) 100000")
                    try await other.has("next-\(one.name) from \(one.name): 100000 bytes as sent")
                    try await one.has("next-\(one.name) to \(other.name): sent")
                }
                for program in programs { #expect(!program.lines.contains { $0.hasSuffix("is not here") }, "\(program.lines)") }
            }
        }
    }
}
