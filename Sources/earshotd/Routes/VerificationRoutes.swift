internal import Earshot
internal import EarshotClient
internal import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore

/// `/v1/peers/{peer}/verification`: the comparison of digits by two users.
struct VerificationRoutes: Sendable {
    let api: ControlAPIServices

    init(_ api: ControlAPIServices) { self.api = api }

    var routes: [Route] {
        [
            Route(.post, "/v1/peers/:peer/verification", self.start),
            Route(.get, "/v1/peers/:peer/verification") { _, context in
                try .json(ControlAPI.Verification(try await self.api.node.verification(context.parameter("peer"))))
            },
            Route(.delete, "/v1/peers/:peer/verification") { request, context in
                let mismatch = try Query(request).flag("mismatch")
                let peer = try context.parameter("peer")
                return try .json(ControlAPI.Verification(try await self.api.node.endVerification(peer, mismatch: mismatch)))
            },
        ]
    }

    private func start(_ request: Request, _ context: APIContext) async throws -> Response {
        let peer = try context.parameter("peer")
        // The body is optional, and most requests have none.
        let hasBody = request.headers[.transferEncoding] != nil || (request.headers[.contentLength] ?? "0") != "0"
        let seconds = hasBody ? try await request.json(ControlAPI.VerificationRequest.self).timeoutSeconds : nil
        let timeout = try seconds.map { seconds throws(APIProblem) in
            try Duration.request(seconds, field: "timeout_seconds", atMost: WireLimits.comparisonTime)
        }
        return try .json(ControlAPI.Verification(try await self.api.node.verify(peer, timeout: timeout)))
    }
}
