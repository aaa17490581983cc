internal import ArgumentParser
internal import Earshot
internal import EarshotSafety
internal import FoundationEssentials

struct IdentityNewCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "new", abstract: "Replace this machine's key with a new one.",
        discussion: "To other peers, this machine is then a new peer. The old key is kept in the same directory.")

    @OptionGroup var options: PlaceOptions
    @Flag(name: .long, help: "Print JSON.")
    var json = false

    mutating func run() throws {
        let (loaded, _) = try self.options.load()
        if let certificate = loaded.settings.node.certificate {
            throw StartError(
                description: "the identity is \(certificate.escapedForDisplay) of [identity] in the settings; create a new one there, "
                    + "or remove it from the settings", exitCode: 78)
        }
        let (identity, kept) = try Self.replace(in: loaded.stateDirectory)
        let path = loaded.stateDirectory + "/" + Identity.fileName
        let isJSON = self.json
        // Printed last: the messages on standard error appear even if standard output fails.
        let shown = Result { try IdentityShowCommand.write(IdentityShowCommand.shown(identity, path: path), json: isJSON) }
        if let kept {
            EarshotDaemon.say("the old identity is kept in \(kept.escapedForDisplay); to return to it, put it back as \(Identity.fileName)")
        }
        EarshotDaemon.say("peers will see a new peer: no peer trusts it, and the sessions of the old one have ended")
        if Self.isInUse(loaded.stateDirectory) {
            EarshotDaemon.say("the daemon runs with the old identity until it is started again: sudo systemctl restart earshotd")
        }
        try shown.get()
    }

    private static func replace(in directory: String) throws -> (Identity, String?) {
        do throws(EarshotError) {
            return try Identity.replace(in: directory, now: Date())
        } catch {
            throw PlaceOptions.failure(error)
        }
    }

    /// Returns whether a daemon holds the lock of the state directory.
    private static func isInUse(_ directory: String) -> Bool {
        // The lock's file is not created here: if root owned it, the service's user could not open it.
        guard FileStatus(path: directory + "/" + StateLock.fileName) != nil else { return false }
        do throws(EarshotError) {
            _ = try StateLock(directory: directory)
            return false
        } catch {
            return error.code == .conflict
        }
    }
}
