internal import Earshot
internal import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore
internal import NIOCore

/// One call of the API.
struct Route: Sendable {
    let method: HTTPRequest.Method
    /// The path with its parameters, such as `/v1/peers/:peer`.
    let path: String
    let handler: @Sendable (Request, APIContext) async throws -> Response

    init(_ method: HTTPRequest.Method, _ path: String, _ handler: @escaping @Sendable (Request, APIContext) async throws -> Response) {
        self.method = method
        self.path = path
        self.handler = handler
    }

    /// The number of parameters in the path.
    var parameters: Int { self.path.split(separator: "/").count { $0.hasPrefix(":") } }

    /// Whether a request's path matches this route's path. The method does not matter.
    func matches(_ path: [Substring]) -> Bool {
        let own = self.path.split(separator: "/")
        return own.count == path.count && zip(own, path).allSatisfy { $0.hasPrefix(":") || $0 == $1 }
    }
}

/// Combines the routes of all resources. For a request that no route matches, it distinguishes an unknown path from a known path with
/// another method.
enum ControlRouter {
    /// Returns every call, by resource.
    static func routes(_ api: ControlAPIServices) -> [Route] {
        StatusRoutes(api).routes + PeersRoutes(api).routes + VerificationRoutes(api).routes + InvitationsRoutes(api).routes
            + SessionsRoutes(api).routes + GroupsRoutes(api).routes + MessagesRoutes(api).routes + OutboxRoutes(api).routes
            + StreamsRoutes(api).routes
            + ResourcesRoutes(api).routes + EventsRoutes(api).routes + SettingsRoutes(api).routes + MetricsRoutes(api).routes
            + OpenAPIRoutes.routes
    }

    /// Returns a router for these routes.
    static func build(_ routes: [Route]) -> Router<APIContext> {
        let router = Router(context: APIContext.self)
        router.add(middleware: UnmatchedMiddleware(routes: routes))
        for route in routes { router.on(RouterPath(route.path), method: route.method, use: route.handler) }
        return router
    }

    /// Returns the problem for a request that no route matches.
    static func unmatched(_ method: HTTPRequest.Method, _ path: String, among routes: [Route]) -> APIProblem {
        let segments = path.split(separator: "/")
        let matching = routes.filter { $0.matches(segments) }
        // A literal segment takes precedence over a parameter, as in the router: `messages/read` is not the message `read`.
        let parameters = matching.map(\.parameters).min()
        var found = Set(matching.filter { $0.parameters == parameters }.map(\.method.rawValue))
        if found.contains(HTTPRequest.Method.get.rawValue) { found.insert(HTTPRequest.Method.head.rawValue) }
        let methods = found.sorted()
        guard !methods.isEmpty else {
            return APIProblem(.notFound, "there is no such call; the calls begin with /v1, such as GET /v1/status", closesConnection: true)
        }
        let allow = methods.joined(separator: ", ")
        return APIProblem(
            .unsupported, "this call takes \(allow) and not \(method.rawValue)", status: .methodNotAllowed, fields: [.allow: allow],
            closesConnection: true)
    }
}

/// Turns the router's own errors into ours.
private struct UnmatchedMiddleware: RouterMiddleware {
    let routes: [Route]

    @concurrent func handle(
        _ request: Request, context: APIContext, next: @concurrent (Request, APIContext) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch let error as HTTPError where error.status == .notFound {
            throw ControlRouter.unmatched(request.method, request.uri.path, among: self.routes)
        } catch let error as NIOTooManyBytesError {
            // Without this conversion, Hummingbird would write its own response for this error.
            throw APIProblem(error)
        } catch let error as HTTPError {
            throw APIProblem(error)
        }
    }
}
