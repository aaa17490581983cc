import ArgumentParser
import EarshotClient
import EarshotSafety

struct PolicyExplainCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain", abstract: "Explain which rules apply to a peer.")

    @Argument(help: .peer, completion: .peer(notYet: nil))
    var peer: String
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let (options, name) = (self.options, self.peer)
        let policy = try await options.withClient { client in try await client.policy(of: name) }
        guard !options.json else { return try Standard.write(json: policy.json) }
        try Standard.write(Render.trust(policy.value))
        try Render.decisions(policy.value).show(empty: "no rules")
    }
}
