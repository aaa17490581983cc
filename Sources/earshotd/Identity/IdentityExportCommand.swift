internal import ArgumentParser
internal import Earshot
internal import EarshotSafety
internal import Glibc

struct IdentityExportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write the key and its certificate as PEM, for a backup. Keep it secret: anyone who has it can impersonate this machine.")

    @OptionGroup var options: PlaceOptions
    @Option(
        name: .shortAndLong, help: ArgumentHelp("Create this file, mode 0600, instead of writing to standard output.", valueName: "file"),
        completion: .file())
    var output: String?

    mutating func run() throws {
        let (loaded, _) = try self.options.loadForReading()
        let pem: String?
        do throws(EarshotError) {
            if let certificate = loaded.settings.node.certificate, let key = loaded.settings.node.privateKey {
                pem = try Identity.pem(certificate: certificate, privateKey: key)
            } else {
                pem = try Identity.pem(in: loaded.stateDirectory)
            }
        } catch {
            throw PlaceOptions.failure(error)
        }
        guard let pem else { throw PlaceOptions.missing(loaded.stateDirectory) }
        guard let output = self.output, output != "-" else {
            try EarshotDaemon.output(pem)
            return
        }
        let descriptor = open(output, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw StartError.cannotWrite(output, errno, exitCode: 73) }
        defer { close(descriptor) }
        let code = Array(pem.utf8).withUnsafeBytes { BytePipe.write($0, to: descriptor) }
        guard code == 0 else { throw StartError.cannotWrite(output, code, exitCode: 74) }
        guard fsync(descriptor) == 0 else { throw StartError.cannotWrite(output, errno, exitCode: 74) }
        EarshotDaemon.say(
            "exported to \(output.escapedForDisplay); to restore it, put it into the state directory as \(Identity.fileName), mode 0600")
    }
}
