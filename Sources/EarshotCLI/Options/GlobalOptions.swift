import ArgumentParser
import EarshotClient

/// The options that every command has.
struct GlobalOptions: ParsableArguments {
    @Option(
        name: .long,
        help: ArgumentHelp(
            "The daemon's socket. Default: EARSHOT_SOCKET, the user's daemon, or the system's daemon.", valueName: "path"),
        completion: .file())
    var socket: String?

    @Flag(name: .long, help: "Print the API's JSON.")
    var json = false

    mutating func validate() throws {
        guard self.socket != "" else { throw ValidationError("the path of the socket is empty") }
    }

    /// Calls `body` with a client of the daemon.
    func withClient<Result: Sendable>(_ body: (ControlClient) async throws -> Result) async throws -> Result {
        let remarks = UnreadableRemarks()
        return try await ControlClient.with(
            socketPath: ControlSocket.path(given: self.socket), onUnreadable: { part in remarks.tell(part) }, body)
    }
}
