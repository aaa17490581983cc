import EarshotSafety
import EarshotWire
package import FoundationEssentials
package import NIOSSL
import SwiftASN1
import X509

/// The authorities whose peers are trusted without asking: whoever shows a certificate that one of them signed, directly or over others,
/// within its dates (RFC 5280 section 6). Over TLS alone, which proves that the peer holds the certificate's key.
package struct CertificateAuthorities: Sendable {
    /// Certificates in a chain that are looked at: real ones have two to four, and each more multiplies a stranger's work for us.
    package static let chainLimit = 8

    private let roots: [Certificate]

    /// Whether any is there.
    package var isEmpty: Bool { self.roots.isEmpty }

    /// None.
    package init() {
        self.roots = []
    }

    /// Reads PEM files of one or several certificates each.
    /// - Throws: `invalid-parameter`, in words for a person.
    package init(paths: [String]) throws(EarshotError) {
        var roots: [Certificate] = []
        for path in paths {
            let shown = path.escapedForDisplay
            let pem: String?
            do throws(EarshotError) {
                pem = try IdentityFile.read(path, "the authority", isSecret: false, followsLinks: true)
            } catch {
                throw EarshotError(.invalidParameter, error.message, underlying: error)
            }
            guard let pem else { throw EarshotError(.invalidParameter, "there is no authority \(shown)") }
            let found: [Certificate]
            do {
                found = try PEMDocument.parseMultiple(pemString: pem).filter { $0.discriminator == "CERTIFICATE" }
                    .map { try Certificate(derEncoded: $0.derBytes) }
            } catch {
                throw EarshotError(.invalidParameter, "the authority \(shown) is not a certificate in PEM: \(error)", underlying: error)
            }
            guard !found.isEmpty else { throw EarshotError(.invalidParameter, "no certificate is in the authority \(shown)") }
            guard found.allSatisfy(Self.maySign) else {
                throw EarshotError(.invalidParameter, "a certificate in \(shown) is not an authority's: it may not sign others")
            }
            roots += found
        }
        self.roots = roots
    }

    /// Whether the basic constraints say so (RFC 5280 section 4.2.1.9).
    private static func maySign(_ certificate: Certificate) -> Bool {
        guard let constraints = try? certificate.extensions.basicConstraints else { return false }
        return switch constraints {
        case .isCertificateAuthority: true
        case .notCertificateAuthority: false
        }
    }

    /// Until when the chain that a peer shows is good, its own certificate first; `nil` where it leads to none of the authorities, or not now.
    package func vouch(for chain: [NIOSSLCertificate]) async -> Date? {
        guard !self.roots.isEmpty, (1...Self.chainLimit).contains(chain.count),
            let certificates = try? chain.map({ try Certificate(derEncoded: $0.toDERBytes()) })
        else { return nil }
        var verifier = Verifier(rootCertificates: CertificateStore(self.roots)) { RFC5280Policy() }
        let result = await verifier.validate(leaf: certificates[0], intermediates: CertificateStore(certificates.dropFirst()))
        return switch result {
        case .validCertificate(let good): good.map(\.notValidAfter).min()
        case .couldNotValidate: nil
        }
    }
}
