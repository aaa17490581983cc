import NIOCore
package import NIOSSL

/// How this node speaks TLS: 1.3 only, mutual, certificates judged by their key ("Keys and peer ids" in EarshotWire's Handshake.md).
package struct TLSContexts: Sendable {
    private let server: NIOSSLContext
    private let client: NIOSSLContext

    /// The schemes of TLS for the kinds of keys that there are; BoringSSL's own list has no Ed25519.
    private static let algorithms: [SignatureAlgorithm] = [
        .ecdsaSecp256R1Sha256, .ecdsaSecp384R1Sha384, .ed25519, .rsaPssRsaeSha256, .rsaPssRsaeSha384, .rsaPssRsaeSha512,
    ]

    package init(_ identity: Identity) throws {
        let chain = identity.chain.map { NIOSSLCertificateSource.certificate($0) }
        var server = TLSConfiguration.makeServerConfiguration(certificateChain: chain, privateKey: .privateKey(identity.tlsPrivateKey))
        var client = TLSConfiguration.makeClientConfiguration()
        client.certificateChain = chain
        client.privateKey = .privateKey(identity.tlsPrivateKey)
        self.server = try Self.context(&server)
        self.client = try Self.context(&client)
    }

    private static func context(_ configuration: inout TLSConfiguration) throws -> NIOSSLContext {
        configuration.minimumTLSVersion = .tlsv13
        configuration.verifySignatureAlgorithms = Self.algorithms
        configuration.signingSignatureAlgorithms = Self.algorithms
        // With a callback of ours this makes the listener ask for the dialler's certificate.
        configuration.certificateVerification = .noHostnameVerification
        // Also how long TLS's side of a connection stays in memory after one was closed whose peer went without a goodbye.
        configuration.shutdownTimeout = TimeAmount(EarshotLimits.closingTime)
        return try NIOSSLContext(configuration: configuration)
    }

    /// The listener's side of a connection; `validation` learns what the other side has shown.
    package func serverHandler(_ validation: CertificateValidation = CertificateValidation()) -> NIOSSLServerHandler {
        NIOSSLServerHandler(context: self.server, customVerificationCallback: self.judge(validation))
    }

    /// The dialler's side.
    package func clientHandler(_ validation: CertificateValidation = CertificateValidation()) throws -> NIOSSLClientHandler {
        try NIOSSLClientHandler(context: self.client, serverHostname: nil, customVerificationCallback: self.judge(validation))
    }

    /// TLS itself checks that the other side holds its certificate's key (RFC 8446 section 4.4.3), after this. Whose key it is, is judged
    /// after the hellos, which must name the same one; names and dates in a certificate say nothing of that. Whether an authority has
    /// signed it is asked once the key is proven, and no connection is refused for the answer.
    private func judge(
        _ validation: CertificateValidation
    ) -> @Sendable ([NIOSSLCertificate], EventLoopPromise<NIOSSLVerificationResult>) -> Void {
        { certificates, promise in
            guard let chain = Self.chain(certificates) else { return promise.succeed(.failed) }
            validation.note(chain)
            promise.succeed(.certificateVerified)
        }
    }

    /// The certificates in DER; `nil` for none, and for more than anyone has.
    private static func chain(_ certificates: [NIOSSLCertificate]) -> [[UInt8]]? {
        guard (1...EarshotLimits.shownCertificates).contains(certificates.count),
            let chain = try? certificates.map({ try $0.toDERBytes() }), chain.reduce(0, { $0 + $1.count }) <= EarshotLimits.chainBytes
        else { return nil }
        return chain
    }
}
