import ArgumentParser
import Earshot
import Foundation

/// Many small nodes in one process, each in a session with the daemon at an address; prints `ready`, and stays until it is ended.
struct SessionsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "sessions")

    @Argument var address: String
    @Argument var count: Int
    @Option var encryption = "required"

    func run() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            let (joined, join) = AsyncStream<Void>.makeStream()
            for number in 1...self.count {
                group.addTask {
                    try await BenchmarkNode.with("node-\(number)", peers: [self.address], encryption: .init(named: self.encryption)) {
                        node in
                        _ = try await BenchmarkNode.agree(node)
                        join.yield()
                        try await Task.sleep(for: .seconds(86_400))
                    }
                }
            }
            group.addTask {
                var left = self.count
                for await _ in joined {
                    left -= 1
                    guard left == 0 else { continue }
                    say("ready")
                }
            }
            // The first that fails ends the others, which stay for ever.
            for try await _ in group {}
        }
    }
}
