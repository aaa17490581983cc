import ArgumentParser
import Foundation

/// What Tests/Benchmarks/run measures of the library itself, without a daemon; each host runs one side.
@main
struct Benchmark: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "benchmark", subcommands: [ReceiveCommand.self, SendCommand.self, SessionsCommand.self])
}

/// Writes a line to standard output, at once.
func say(_ line: String) {
    FileHandle.standardOutput.write(Data((line + "\n").utf8))
}
