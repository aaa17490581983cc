internal import Earshot
internal import EarshotClient
internal import FoundationEssentials
internal import Hummingbird
internal import HummingbirdCore

/// `/v1/peers`: the peers, and the trust in them.
struct PeersRoutes: Sendable {
    let api: ControlAPIServices

    init(_ api: ControlAPIServices) { self.api = api }

    var routes: [Route] {
        [
            Route(.get, "/v1/peers") { _, _ in
                try .json(ControlAPI.PeerList(peers: await self.api.node.peers().map(ControlAPI.Peer.init)))
            },
            Route(.get, "/v1/peers/:peer") { _, context in
                try .json(ControlAPI.Peer(try await self.api.node.peer(context.parameter("peer"))))
            },
            Route(.get, "/v1/peers/:peer/policy") { _, context in
                try .json(ControlAPI.PeerPolicy(try await self.api.node.explainPolicy(context.parameter("peer"))))
            },
            Route(.put, "/v1/peers/:peer/trust", self.setTrust),
            Route(.put, "/v1/peers/:peer/alias") { request, context in
                let peer = try context.parameter("peer")
                let text = try await request.json(ControlAPI.AliasRequest.self).alias
                guard let alias = try? DisplayName(text) else {
                    throw APIProblem(.invalidParameter, "an alias has 1 to \(DisplayName.byteLimit) bytes, and no control characters")
                }
                return try .json(ControlAPI.Peer(try await self.api.node.setAlias(alias, for: peer)))
            },
            Route(.delete, "/v1/peers/:peer/alias") { _, context in
                try .json(ControlAPI.Peer(try await self.api.node.setAlias(nil, for: context.parameter("peer"))))
            },
            Route(.post, "/v1/peers/:peer/ping") { _, context in
                try .json(ControlAPI.PeerPing(try await self.api.node.ping(context.parameter("peer"))))
            },
        ]
    }

    private func setTrust(_ request: Request, _ context: APIContext) async throws -> Response {
        let peer = try context.parameter("peer")
        let body = try await request.json(ControlAPI.TrustRequest.self)
        guard let trust = Trust(rawValue: body.trust.rawValue) else {
            throw APIProblem(.invalidParameter, "`trust` is one of trusted, unknown, blocked")
        }
        return try .json(ControlAPI.Peer(try await self.api.node.setTrust(trust, for: peer, until: Self.end(of: body))))
    }

    /// Returns the time when the trust expires.
    private static func end(of body: ControlAPI.TrustRequest) throws -> Date? {
        guard let seconds = body.forSeconds else { return body.expiresAt }
        guard body.expiresAt == nil else { throw APIProblem(.invalidParameter, "give either `for_seconds` or `expires_at`, not both") }
        let time = try Duration.request(seconds, field: "for_seconds", atMost: EarshotLimits.trustTime)
        guard time > .zero else { throw APIProblem(.invalidParameter, "`for_seconds` is more than 0") }
        return Date(timeIntervalSinceNow: time / .seconds(1))
    }
}
