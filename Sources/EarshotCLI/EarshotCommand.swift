import ArgumentParser
import EarshotClient
import EarshotSafety
import Glibc

/// The command line: `earshot VERB`, a client of the daemon's control API. Its manual page is earshot(1).
@main
struct EarshotCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "earshot",
        abstract: "Exchange messages, files and streams with machines on the local network, through earshotd.",
        version: "earshot \(EarshotVersion.described)",
        groupedSubcommands: [
            CommandGroup(
                name: "Status",
                subcommands: [
                    StatusCommand.self, PeersCommand.self, SessionsCommand.self, EventsCommand.self, MetricsCommand.self, PingCommand.self,
                    DoctorCommand.self, ConfigCommand.self,
                ]),
            CommandGroup(
                name: "Peers and trust",
                subcommands: [
                    InviteCommand.self, InvitationsCommand.self, AcceptCommand.self, RejectCommand.self, BlockCommand.self,
                    UnblockCommand.self, VerifyCommand.self, TrustCommand.self, DistrustCommand.self, LeaveCommand.self,
                    PeerCommand.self, PolicyCommand.self, IdentityCommand.self,
                ]),
            CommandGroup(
                name: "Messages and files",
                subcommands: [
                    SendCommand.self, ReceiveCommand.self, AskCommand.self, OnCommand.self, OutboxCommand.self, FileCommand.self,
                    StreamCommand.self, GroupCommand.self,
                ]),
        ])

    /// Files that a command opens at the same time: event loops, the socket, and a file or the levels of a directory.
    private static let descriptors = 24

    /// Fails: a script that forgot the verb must not take that for success.
    mutating func run() async throws {
        throw CommandFailure(.usage, "a command is missing", hint: Self.helpMessage())
    }

    static func main() async {
        StandardDescriptors.fill()
        ProcessLimits.ignoreFileSizeSignal()
        do {
            try ProcessLimits.require(descriptors: Self.descriptors)
            Interrupts.install()
            if let fault = ArgumentText.fault() {
                throw CommandFailure(
                    .data, fault,
                    hint: CommandLine.arguments.dropFirst().first == "file"
                        ? "rename the file, or send it by a link with another name: ln -s FILE NAME"
                        : "bytes of any kind go through standard input or a file: earshot send PEER - < FILE")
            }
            let arguments = ArgumentOrder.verbFirst(Array(CommandLine.arguments.dropFirst()))
            try CommandNames.check(arguments)
            var command = try await Self.asyncParseAsRoot(arguments)
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
            _exit(ExitStatus.done.rawValue)
        } catch {
            _exit(FailureReport(error).tell(asJSON: FailureReport.isJSON(CommandLine.arguments)))
        }
    }
}

extension CommandFailure {
    /// The failure for a missing second word of a verb.
    init(commandMissingOf verb: any ParsableCommand.Type) {
        self.init(
            .usage, "a command of \(verb.configuration.commandName ?? "it") is missing", hint: EarshotCommand.helpMessage(for: verb))
    }
}
