import ArgumentParser
import EarshotClient

struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor", abstract: "Diagnose problems, and suggest what to do about each.",
        discussion: """
            Prints one line per check, which begins with ok, warn, fail, or skip if the check could not be made. With a peer, it also \
            connects to that peer and reports each step. As root, it also checks the firewall's rules. \
            The exit status is 0 if no check failed, 1 otherwise.
            """)

    @Argument(help: ArgumentHelp("Also check the connection to this peer.", valueName: "peer"), completion: .peer(notYet: .blocked))
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
