import FoundationEssentials
import Glibc

/// Writes a manual page in mdoc(7), so that no page says what the programs do not do: the commands and options come from the programs'
/// own definitions (`--experimental-dump-help` of the argument parser), the settings from the commented example file.
///
/// `manual PAGE VERSION DATE < INPUT > PAGE`, run by Config/documentation; a tool of the build, installed nowhere.
@main
struct Manual {
    static func main() {
        let arguments = CommandLine.arguments.dropFirst()
        guard arguments.count == 3, let name = arguments.first, let page = Page(rawValue: name) else {
            Self.end("usage: manual \(Page.allCases.map(\.rawValue).joined(separator: "|")) VERSION DATE < INPUT", 64)
        }
        var input: [UInt8] = []
        while let line = readLine(strippingNewline: false) { input += Array(line.utf8) }
        do {
            print(try page.text(input: input, version: arguments[2], date: arguments[3]), terminator: "")
        } catch {
            Self.end("cannot write \(name): \(error)", 65)
        }
    }

    private static func end(_ message: String, _ code: Int32) -> Never {
        let line = Array("manual: \(message)\n".utf8)
        _ = write(STDERR_FILENO, line, line.count)
        exit(code)
    }
}

/// The pages there are.
enum Page: String, CaseIterable {
    case earshot = "earshot.1"
    case earshotd = "earshotd.8"
    case settings = "earshotd.conf.5"

    /// The page's source, made from its input.
    func text(input: [UInt8], version: String, date: String) throws -> String {
        var page = Mdoc()
        page.heading(self.rawValue, version: version, date: date)
        switch self {
        case .earshot: EarshotPage.write(try CommandDump(json: input).command, to: &page)
        case .earshotd: DaemonPage.write(try CommandDump(json: input).command, to: &page)
        case .settings: SettingsPage.write(SettingsFile(String(decoding: input, as: UTF8.self)), to: &page)
        }
        return page.text
    }
}
