import ArgumentParser
import Glibc

/// Runs `earshotd identity` under the name that users look for. The key file belongs to the daemon, and only users who may read it can use
/// it.
struct IdentityCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "identity", abstract: "Show, replace or export this machine's key; same as earshotd identity.",
        usage: "earshot identity show|new|export [--state-directory DIR] [--config FILE]")

    @Argument(
        parsing: .captureForPassthrough, help: ArgumentHelp("show, new or export; see earshotd identity --help.", valueName: "arguments"))
    var arguments: [String] = []
    @OptionGroup var options: GlobalOptions

    mutating func run() throws {
        for number in Interrupts.numbers { signal(number, SIG_DFL) }
        let words = ["earshotd", "identity"] + self.arguments + (self.options.json ? ["--json"] : [])
        var pointers: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        // Prefers the daemon that was installed with this program.
        if let path = Self.sibling { execv(path, &pointers) }
        execvp("earshotd", &pointers)
        throw CommandFailure(
            .failure, "cannot run earshotd: \(String(cString: strerror(errno)))", hint: "install it beside earshot, or put it on the PATH")
    }

    /// `earshotd` in the directory of this program.
    private static var sibling: String? {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &buffer, buffer.count)
        guard count > 0, count < buffer.count else { return nil }
        let path = String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return path.split(separator: "/").dropLast().reduce("") { "\($0)/\($1)" } + "/earshotd"
    }
}
