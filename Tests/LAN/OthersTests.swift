import Foundation
import Testing

/// The directory of the programs that `Tests/outside` has built; `nil` in a run of the tests alone.
private let binaries = ProcessInfo.processInfo.environment["EARSHOT_OTHERS_BIN"]
private let times = ProcessInfo.processInfo.environment["EARSHOT_TIMES"].flatMap { Int($0) } ?? 1

extension LAN {
    /// Programs by other authors for Apple's framework, compiled unchanged; `Tests/outside` builds them and runs this suite.
    @Suite(.serialized, .enabled(if: binaries != nil, "Tests/outside runs it")) struct Others {
        /// One such program on its own host.
        private struct Program {
            let name: String
            let running: Running

            var lines: [Substring] { self.running.outputSoFar().split(separator: "\n") }

            /// The output, for a failing test.
            private func state() -> String {
                "\(self.lines); it \(self.running.isRunning ? "runs" : "has ended"), and says \(self.running.errorsSoFar().suffix(1500))"
            }

            func has(_ line: String) async throws {
                try await self.eventually("reads \"\(line)\"") { $0.contains { $0 == line } }
            }

            /// Waits until the output satisfies a condition.
            func eventually(_ what: String, _ condition: ([Substring]) -> Bool) async throws {
                try await LANTests.eventually(within: .seconds(60), "\(self.name) \(what)", instead: self.state) { condition(self.lines) }
            }
        }

        private func start(_ kind: String, _ name: String, _ count: Int, _ laboratory: Laboratory) throws -> Program {
            let binary = "\(try #require(binaries))/\(kind)"
            let words = kind == "multipeer" ? [binary, name, laboratory.serviceType, "\(count)"] : [binary, name, "\(count)"]
            return Program(name: name, running: try laboratory.start(on: name, words))
        }

        private func greeting(of name: String, in kind: String) -> String {
            kind == "multipeer" ? "\(name): hello from \(name) 7" : "hello from \(name)"
        }

        /// Kills a program and restarts it, at once or after the others have noticed its loss. Then it connects to all of them, and sends a
        /// message.
        private func restart(
            _ index: Int, of programs: inout [Program], atOnce: Bool, _ kind: String, _ laboratory: Laboratory
        ) async throws {
            let (name, count) = (programs[index].name, programs.count)
            let (others, greeting) = (programs.filter { $0.name != name }, self.greeting(of: name, in: kind))
            let heard = others.map { program in program.lines.count { $0 == greeting } }
            programs[index].running.signal(SIGKILL)
            if !atOnce {
                for program in others {
                    try await program.eventually("misses \(name)") { lines in
                        lines.last { $0.hasPrefix("connected") } == "connected \(count - 2)"
                    }
                }
            }
            let began = ContinuousClock.now
            programs[index] = try self.start(kind, name, count, laboratory)
            try await programs[index].has("connected \(count - 1)")
            for (program, before) in zip(others, heard) {
                try await program.eventually("hears \(name) again") { lines in
                    lines.count { $0 == greeting } == before + 1
                        && lines.last { $0.hasPrefix("connected") } == "connected \(count - 1)"
                }
            }
            let way = atOnce ? "at once" : "when it was missed"
            measured("a killed one of \(count) programs of \(kind) that starts \(way) is back", ContinuousClock.now - began)
        }

        /// All programs start at once. Each sends a message once it is connected to all others, and all receive it. Then two programs are
        /// killed and restarted.
        @Test(arguments: ["multipeer", "colors"], [3, 8]) func everybodyHearsEverybody(_ kind: String, _ count: Int) async throws {
            for _ in 0..<times {
                try await Laboratory.run { laboratory in
                    let names = (1...count).map { "peer\($0)" }
                    for (number, name) in names.enumerated() { try await laboratory.ownHost(name, "10.77.0.\(130 + number)") }
                    let began = ContinuousClock.now
                    var programs: [Program] = []
                    for name in names { programs.append(try self.start(kind, name, count, laboratory)) }
                    for program in programs {
                        for other in names where other != program.name { try await program.has(self.greeting(of: other, in: kind)) }
                    }
                    measured("\(count) programs of \(kind) are one mesh, and have heard each other", ContinuousClock.now - began)
                    for program in programs {
                        for other in names where other != program.name {
                            #expect(program.lines.count { $0 == self.greeting(of: other, in: kind) } == 1)
                        }
                    }
                    try await self.restart(0, of: &programs, atOnce: false, kind, laboratory)
                    try await self.restart(1, of: &programs, atOnce: true, kind, laboratory)
                }
            }
        }
    }
}
