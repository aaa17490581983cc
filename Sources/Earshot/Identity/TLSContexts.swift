import NIOCore
package import NIOSSL

/// How this node speaks TLS: 1.3 only, mutual, certificates judged by their key (design section 3).
package struct TLSContexts: Sendable {
    private let server: NIOSSLContext
    private let client: NIOSSLContext

    package init(_ identity: Identity) throws {
        var server = TLSConfiguration.makeServerConfiguration(
            certificateChain: [.certificate(identity.certificate)], privateKey: .privateKey(identity.tlsPrivateKey))
        server.minimumTLSVersion = .tlsv13
        // With a callback of ours this makes the listener ask for the dialler's certificate.
        server.certificateVerification = .noHostnameVerification
        self.server = try NIOSSLContext(configuration: server)

        var client = TLSConfiguration.makeClientConfiguration()
        client.minimumTLSVersion = .tlsv13
        client.certificateChain = [.certificate(identity.certificate)]
        client.privateKey = .privateKey(identity.tlsPrivateKey)
        client.certificateVerification = .noHostnameVerification
        self.client = try NIOSSLContext(configuration: client)
    }

    /// The listener's side of a connection.
    package func serverHandler() -> NIOSSLServerHandler {
        NIOSSLServerHandler(context: self.server, customVerificationCallback: Self.acceptAnyKey)
    }

    /// The dialler's side.
    package func clientHandler() throws -> NIOSSLClientHandler {
        try NIOSSLClientHandler(context: self.client, serverHostname: nil, customVerificationCallback: Self.acceptAnyKey)
    }

    /// TLS itself checks that the other side holds its certificate's key (RFC 8446 section 4.4.3). Whose key it is, is judged
    /// after the hellos, which must name the same one; names and dates in a self-signed certificate say nothing.
    private static let acceptAnyKey: @Sendable ([NIOSSLCertificate], EventLoopPromise<NIOSSLVerificationResult>) -> Void = {
        certificates, promise in
        promise.succeed(certificates.isEmpty ? .failed : .certificateVerified)
    }
}
