import ArgumentParser
import EarshotControl
import EarshotSafety
import Glibc

struct FileSendCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "send", abstract: "Send files, and wait until the receiver has them.")

    @Argument(help: .peer, completion: .reachablePeer)
    var peer: String
    @Argument(help: ArgumentHelp("The files.", valueName: "path"), completion: .file())
    var paths: [String]
    @Option(name: .long, help: ArgumentHelp("One more recipient; may be repeated.", valueName: "peer"), completion: .reachablePeer)
    var to: [String] = []
    @OptionGroup var options: GlobalOptions

    mutating func validate() throws {
        guard !self.paths.contains("") else { throw ValidationError("the path of a file is empty") }
    }

    mutating func run() async throws {
        let options = self.options
        let recipients = [self.peer] + self.to
        // All are looked at before the first is sent: a typing error must not leave half of the work done.
        let files = try self.paths.map { try SourceFile($0) }
        let canOpen = SourceFile.daemonCanOpen(socketPath: ControlSocket.path(given: options.socket))
        try await options.withClient { client in
            await ProtectionWarning(client: client).tell(of: recipients)
            var results: [FileUpload.Result] = []
            for file in files {
                let upload = FileUpload(file: file, recipients: recipients, client: client)
                results += try await canOpen && !file.isLink ? upload.byPath() : upload.byContent()
                ProgressLine.leave()
                results.suffix(recipients.count).forEach { $0.tell(file: file.name) }
            }
            if options.json {
                try Standard.write(json: try ControlJSON.encode(ControlAPI.ResourceList(resources: results.compactMap(\.resource))))
            }
            let worst = ExitStatus.worst(results.map(\.status))
            guard worst == .done else { throw CommandFailure(worst, nil) }
        }
    }
}
