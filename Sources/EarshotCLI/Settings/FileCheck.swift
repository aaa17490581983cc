import EarshotClient
import EarshotSafety
import Glibc

/// `earshotd --check-config`, which reads the settings files: this program knows no keys.
enum FileCheck {
    /// Reads the settings of a file and its drop-ins, and checks them. `candidate` is an open file that is read in place of the drop-in of
    /// this program.
    static func run(_ path: String, candidate: CInt? = nil) throws(CommandFailure) -> ControlReply<ControlAPI.SettingList> {
        guard let daemon = DoctorFacts.Settings.program() else {
            throw CommandFailure(
                .failure, "earshotd was not found, which reads the settings", hint: "install it beside earshot, or put it on the PATH")
        }
        var arguments = ["--check-config", "--json"]
        // Only the settings matter here: no directory or variable of this user may cause an error.
        var environment = ["STATE_DIRECTORY=/nonexistent", "RUNTIME_DIRECTORY=/nonexistent", "LC_ALL=C"]
        if access(path, F_OK) != 0, let slash = path.lastIndex(of: "/"), path[slash...] == "/\(SettingsPlace.fileName)" {
            // Drop-ins apply without a settings file too.
            environment.append("CONFIGURATION_DIRECTORY=\(path[..<slash])")
        } else {
            arguments += ["--config", path]
        }
        if candidate != nil { arguments += ["--candidate", "/dev/stdin"] }
        guard let run = ToolRun.run(daemon, arguments, environment: environment, input: candidate), let status = run.status else {
            throw CommandFailure(.failure, "cannot run \(daemon.escapedForDisplay), which reads the settings")
        }
        guard status == 0 else { throw CommandFailure(.configuration, Self.fault(run.errors)) }
        do throws(JSONProblem) {
            return ControlReply(value: try ControlJSON.decode(ControlAPI.SettingList.self, from: run.output), json: run.output)
        } catch {
            throw CommandFailure(.failure, "\(daemon.escapedForDisplay) answers with something else than settings: it has another version")
        }
    }

    /// Returns the first line of the daemon's errors, which it has escaped, without its name.
    private static func fault(_ errors: String) -> String {
        let line = errors.split(separator: "\n").first.map(String.init) ?? "earshotd --check-config fails"
        return line.hasPrefix("earshotd: ") ? String(line.dropFirst("earshotd: ".count)) : line
    }
}
