import ArgumentParser
import Foundation

/// Measures the library itself, without a daemon, for Tests/Benchmarks/run. Each host runs one side.
@main
struct Benchmark: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "benchmark", subcommands: [ReceiveCommand.self, SendCommand.self, SessionsCommand.self])
}

/// Writes a line to standard output, at once.
func say(_ line: String) {
    FileHandle.standardOutput.write(Data((line + "\n").utf8))
}
