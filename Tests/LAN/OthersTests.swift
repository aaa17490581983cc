import Foundation
import Testing

/// Where `Tests/outside` has built them; nowhere in a run of the tests alone.
private let binaries = ProcessInfo.processInfo.environment["EARSHOT_OTHERS_BIN"]
private let times = ProcessInfo.processInfo.environment["EARSHOT_TIMES"].flatMap { Int($0) } ?? 1

extension LAN {
    /// Programs whose code nobody here wrote, made for Apple's framework and compiled as they are; `Tests/outside` builds them, and runs this.
    @Suite(.serialized, .enabled(if: binaries != nil, "Tests/outside runs it")) struct Others {
        /// One of them, on a host of its own.
        private struct Program {
            let name: String
            let running: Running

            var lines: [Substring] { self.running.outputSoFar().split(separator: "\n") }

            func has(_ line: String) async throws {
                try await eventually(
                    within: .seconds(60),
                    "\(self.name) reads \"\(line)\", and not just \(self.lines); it runs: \(self.running.isRunning), says \(self.running.errorsSoFar().suffix(1500))"
                ) {
                    self.lines.contains { $0 == line }
                }
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

        /// Started at once; each speaks when it is together with all others, and is heard by all. Then one is killed, and comes back.
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
                    programs[0].running.signal(SIGKILL)
                    for program in programs.dropFirst() {
                        try await eventually(within: .seconds(60), "\(program.name) misses it") {
                            program.lines.last { $0.hasPrefix("connected") } == "connected \(count - 2)"
                        }
                    }
                    programs[0] = try self.start(kind, names[0], count, laboratory)
                    try await programs[0].has("connected \(count - 1)")
                    for program in programs.dropFirst() {
                        try await eventually(within: .seconds(60), "\(program.name) hears the one that is back") {
                            program.lines.count { $0 == self.greeting(of: names[0], in: kind) } == 2
                        }
                    }
                }
            }
        }
    }
}
