internal import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore
internal import NIOCore

/// `/v1/openapi.json`: the API's description in OpenAPI 3.1, compiled in from `OpenAPI/openapi.json`. Tests validate every answer against
/// it.
enum OpenAPIRoutes {
    private static let document = ByteBuffer(bytes: PackageResources.openapi_json)

    static var routes: [Route] {
        [
            Route(.get, "/v1/openapi.json") { _, _ in
                Response(status: .ok, headers: [.contentType: "application/json"], body: .init(byteBuffer: self.document))
            }
        ]
    }
}
