import ArgumentParser
import EarshotClient

struct MetricsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "metrics", abstract: "Print the daemon's metrics, as text for Prometheus.")

    @OptionGroup var options: GlobalOptions

    mutating func validate() throws {
        guard !self.options.json else { throw ValidationError("the metrics are text, and have no JSON") }
    }

    mutating func run() async throws {
        try Standard.write(try await self.options.withClient { client in try await client.metrics() })
    }
}
