internal import Earshot
internal import HTTPTypes

/// The calls of the design that this version does not have: they say so, instead of being unknown.
enum LaterRoutes {
    private static let calls: [(HTTPRequest.Method, String, String)] = [
        (.post, "/v1/peers/:peer/verification", "verification"),
        (.get, "/v1/peers/:peer/verification", "verification"),
        (.delete, "/v1/peers/:peer/verification", "verification"),
    ]

    static var routes: [Route] {
        self.calls.map { method, path, what in
            Route(method, path) { _, _ in
                throw APIProblem(.unsupported, "this version has no \(what) yet", closesConnection: true)
            }
        }
    }
}
