internal import Earshot
internal import HTTPTypes

/// The rules for a request's head, which apply before any route. They are pure functions, so that a test of a rule takes one line.
///
/// A web page can make a browser send requests to almost any address. A browser cannot reach a Unix socket directly, but some proxies and
/// helpers forward to one. A foreign `Host` (DNS rebinding) or any `Origin` identifies such a request (threats: CVE-2022-41924).
enum RequestRules {
    /// The host names that clients use for the daemon. They are never resolved.
    static let hosts: Set<String> = ["localhost", "earshot"]

    /// Returns the problem of the request's head, or `nil` if the head is valid.
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

    /// The name of a second `Host` field. The HTTP library turns the first `Host` field into the authority.
    private static let hostField: HTTPField.Name = {
        guard let name = HTTPField.Name("Host") else { preconditionFailure("Host is a token") }
        return name
    }()

    /// Whether a content type is JSON.
    static func isJSON(_ contentType: String?) -> Bool {
        // Nearly every program writes it in this form, which needs no parsing.
        contentType == self.json || self.mediaType(contentType) == self.json
    }

    private static let json = "application/json"

    /// Returns a content type in lower case, without its parameters, which do not matter.
    static func mediaType(_ contentType: String?) -> String {
        let mediaType = contentType?.prefix { $0 != ";" }.lowercased() ?? ""
        return mediaType.filter { $0 != " " && $0 != "\t" }
    }
}
