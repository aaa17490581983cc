internal import Earshot
internal import HTTPTypes

/// The calls of the design that this version does not have: they say so, instead of being unknown.
enum LaterRoutes {
    private static let calls: [(HTTPRequest.Method, String, String)] = [
        (.post, "/v1/streams", "streams"),
        (.get, "/v1/streams", "streams"),
        (.get, "/v1/streams/:id/content", "streams"),
        (.delete, "/v1/streams/:id", "streams"),
    ]

    static var routes: [Route] {
        self.calls.map { method, path, what in
            Route(method, path) { _, _ in
                throw APIProblem(.unsupported, "this version has no \(what) yet", closesConnection: true)
            }
        }
    }
}
