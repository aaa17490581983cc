internal import Earshot
internal import HTTPTypes

/// Who may speak to the socket, decided before any route sees the request; pure, so that each rule is one line of a test.
///
/// A browser can be talked into sending requests almost anywhere. It cannot reach a Unix socket by itself, but proxies and helpers
/// that forward to one exist: a foreign `Host` (DNS rebinding) or any `Origin` gives such a request away (threats: CVE-2022-41924).
enum RequestRules {
    /// The names by which clients call the daemon; nothing is ever resolved.
    static let hosts: Set<String> = ["localhost", "earshot"]

    /// What is wrong with the request's head, if anything.
    static func fault(_ head: HTTPRequest) -> APIProblem? {
        guard head.headerFields[.origin] == nil else {
            return APIProblem(
                .forbidden, "requests with an Origin are refused: the control API is not for web pages", closesConnection: true)
        }
        guard let host = head.authority, self.hosts.contains(host.lowercased()), head.headerFields[values: Self.hostField].isEmpty else {
            return APIProblem(.forbidden, "the Host must be localhost, such as in http://localhost/v1/status", closesConnection: true)
        }
        guard head.path?.hasPrefix("/") == true else {
            return APIProblem(.invalidParameter, "the request's target must be a path, such as /v1/status", closesConnection: true)
        }
        return nil
    }

    /// A second `Host` header; the first has become the authority.
    private static let hostField: HTTPField.Name = {
        guard let name = HTTPField.Name("Host") else { preconditionFailure("Host is a token") }
        return name
    }()

    /// Whether a body is JSON by its content type.
    static func isJSON(_ contentType: String?) -> Bool {
        // As nearly every program writes it, before it is taken apart.
        contentType == self.json || self.mediaType(contentType) == self.json
    }

    private static let json = "application/json"

    /// A content type in lower case without its parameters, which do not matter.
    static func mediaType(_ contentType: String?) -> String {
        let mediaType = contentType?.prefix { $0 != ";" }.lowercased() ?? ""
        return mediaType.filter { $0 != " " && $0 != "\t" }
    }
}
