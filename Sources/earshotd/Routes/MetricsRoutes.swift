internal import Earshot
internal import EarshotClient
internal import FoundationEssentials
internal import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore
internal import NIOCore

/// `/v1/metrics`: metrics for Prometheus, which reads a Unix socket through a proxy such as socat.
struct MetricsRoutes: Sendable {
    let api: ControlAPIServices

    init(_ api: ControlAPIServices) { self.api = api }

    var routes: [Route] {
        [
            Route(.get, "/v1/metrics") { _, _ in
                let metrics = DaemonMetrics(
                    status: await self.api.node.status(), node: await self.api.node.metrics(), readers: self.api.readers.counts,
                    requests: self.api.requests.byStatus, version: EarshotVersion.current, now: Date(), process: ProcessFigures.now())
                return Response(
                    status: .ok, headers: [.contentType: PrometheusText.contentType],
                    body: .init(byteBuffer: ByteBuffer(string: metrics.text)))
            }
        ]
    }
}
