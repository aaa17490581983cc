import ArgumentParser
import EarshotClient

struct StatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "status", abstract: "Show the daemon's status.")

    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let options = self.options
        let status = try await options.withClient { client in try await client.status() }
        if options.json { return try Standard.write(json: status.json) }
        try Standard.write(Render.status(status.value, socketPath: ControlSocket.path(given: options.socket)))
    }
}
