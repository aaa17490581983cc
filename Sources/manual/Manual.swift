import FoundationEssentials
import Glibc

/// Generates a manual page in mdoc(7). To keep the pages true, the commands and options come from the programs' own definitions
/// (`--experimental-dump-help` of the argument parser), the settings from the commented example file, and the API's calls from its OpenAPI
/// document. The remaining text is an article in Markdown. `api.html` is the OpenAPI document as a page for a browser.
///
/// Usage: `manual PAGE VERSION DATE [ARTICLE] < INPUT > PAGE`. Config/documentation runs it; it is not installed.
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

/// The names of the pages.
enum Page: String, CaseIterable {
    case earshot = "earshot.1"
    case handlers = "earshot-on.1"
    case earshotd = "earshotd.8"
    case settings = "earshotd.conf.5"
    case api = "earshot-api.7"
    case localSend = "earshot-localsend.7"
    case performance = "earshot-performance.7"
    case security = "earshot-security.7"
    case troubleshooting = "earshot-troubleshooting.7"
    case browser = "api.html"

    /// Generates the page's source from its input and its article. Throws if one of them is invalid.
    func text(input: [UInt8], article text: String = "", version: String, date: String) throws -> String {
        let article = try Article(text)
        var page = Mdoc()
        page.heading(self.rawValue, version: version, date: date)
        switch self {
        case .earshot: EarshotPage.write(try CommandDump(json: input).command, article, to: &page)
        case .earshotd: DaemonPage.write(try CommandDump(json: input).command, article, to: &page)
        case .settings: SettingsPage.write(SettingsFile(String(decoding: input, as: UTF8.self)), article, to: &page)
        case .api: APIPage.write(try APIDescription(json: input), article, to: &page)
        case .handlers, .localSend, .performance, .security, .troubleshooting: for section in article.sections { page.section(section) }
        case .browser: return try HTMLPage.text(APIDescription(json: input))
        }
        return page.text
    }
}
