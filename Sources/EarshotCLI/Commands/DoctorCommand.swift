import ArgumentParser
import EarshotClient

struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor", abstract: "Look for what stands in the way: one line a check, and what to do next.",
        discussion: """
            With a peer it also reaches that peer, step by step, and says which step fails. Each line begins with ok, warn, fail, or skip for what could not be checked; as root it checks the firewall's rules too. \
            Ends with 0 when nothing failed, with 1 otherwise.
            """)

    @Argument(help: ArgumentHelp("A peer to reach as well.", valueName: "peer"), completion: .peer(notYet: .blocked))
    var peer: String?
    @OptionGroup var options: GlobalOptions

    mutating func validate() throws {
        guard self.peer != "" else { throw ValidationError("the peer's name is empty") }
    }

    mutating func run() async throws {
        let (options, peer) = (self.options, self.peer)
        let report = DoctorReport(await DoctorFacts.gather(socket: options.socket, peer: peer))
        if options.json {
            try Standard.write(json: try ControlJSON.encode(report))
        } else {
            try Standard.write(report.text(colour: Terminal.hasColour))
            Standard.note(report.summary)
        }
        guard report.failed == 0 else { throw CommandFailure(.failure, nil) }
    }
}
