import FoundationEssentials
import Glibc

/// Writes a manual page in mdoc(7), so that no page says what the programs do not do: the commands and options come from the programs'
/// own definitions (`--experimental-dump-help` of the argument parser), the settings from the commented example file, the API's calls from
/// its OpenAPI document. What only people can say is in an article of Markdown. `api.html` is that document as a page for a browser.
///
/// `manual PAGE VERSION DATE [ARTICLE] < INPUT > PAGE`, run by Config/documentation; a tool of the build, installed nowhere.
@main
struct Manual {
    static func main() {
        let arguments = CommandLine.arguments.dropFirst()
        guard (3...4).contains(arguments.count), let name = arguments.first, let page = Page(rawValue: name) else {
            Self.end("usage: manual \(Page.allCases.map(\.rawValue).joined(separator: "|")) VERSION DATE [ARTICLE] < INPUT", 64)
        }
        var input: [UInt8] = []
        while let line = readLine(strippingNewline: false) { input += Array(line.utf8) }
        do {
            let article = arguments.count == 4 ? String(decoding: try Data(contentsOf: URL(filePath: arguments[4])), as: UTF8.self) : ""
            print(try page.text(input: input, article: article, version: arguments[2], date: arguments[3]), terminator: "")
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
    case api = "earshot-api.7"
    case security = "earshot-security.7"
    case troubleshooting = "earshot-troubleshooting.7"
    case browser = "api.html"

    /// The page's source, made from its input and its article. Throws where either is not what it should be.
    func text(input: [UInt8], article text: String = "", version: String, date: String) throws -> String {
        let article = try Article(text)
        var page = Mdoc()
        page.heading(self.rawValue, version: version, date: date)
        switch self {
        case .earshot: EarshotPage.write(try CommandDump(json: input).command, article, to: &page)
        case .earshotd: DaemonPage.write(try CommandDump(json: input).command, article, to: &page)
        case .settings: SettingsPage.write(SettingsFile(String(decoding: input, as: UTF8.self)), article, to: &page)
        case .api: APIPage.write(try APIDescription(json: input), article, to: &page)
        case .security, .troubleshooting: for section in article.sections { page.section(section) }
        case .browser: return try HTMLPage.text(APIDescription(json: input))
        }
        return page.text
    }
}
