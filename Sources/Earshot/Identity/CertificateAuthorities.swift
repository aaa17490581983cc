import EarshotSafety
import EarshotWire
package import FoundationEssentials
import SwiftASN1
import X509

/// The authorities whose peers are trusted automatically. Such a peer presents a certificate that an authority has signed, directly or
/// through intermediates, and that is valid at the time (RFC 5280 section 6). This applies only to TLS, which proves that the peer holds
/// the certificate's key.
package struct CertificateAuthorities: Sendable {
    /// The authorities by name. Several may share a name while a site replaces one by the next.
    private let authorities: [DistinguishedName: [Certificate]]

    /// Whether there are no authorities.
    package var isEmpty: Bool { self.authorities.isEmpty }

    /// Reads PEM files with one or more certificates each.
    /// - Throws: `invalid-parameter`, with a message for the user.
    package init(paths: [String]) throws(EarshotError) {
        var authorities: [DistinguishedName: [Certificate]] = [:]
        for path in paths {
            for certificate in try Self.read(path) { authorities[certificate.subject, default: []].append(certificate) }
        }
        self.authorities = authorities
    }

    private static func read(_ path: String) throws(EarshotError) -> [Certificate] {
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
        for certificate in found {
            guard certificate.maySign(over: 0) else {
                throw EarshotError(.invalidParameter, "a certificate in \(shown) is not an authority's: it may not sign others")
            }
            guard certificate.isUnderstood else {
                throw EarshotError(
                    .invalidParameter,
                    "an authority in \(shown) speaks for some names only (name constraints), or has a critical extension that is not known here"
                )
            }
        }
        return found
    }

    /// Validates the chain that a peer has presented. This takes some milliseconds of computation, so it must not run on an event loop.
    ///
    /// - Parameters:
    ///   - chain: Certificates in DER, the peer's own first. Each is signed by the next, and the last by one of the authorities.
    ///   - key: The key that the peer has proven, SubjectPublicKeyInfo in DER.
    ///   - now: The time at which the chain must be valid.
    /// - Returns: The time until which the chain is valid.
    /// - Throws: The reason why the chain leads to none of the authorities, or is not valid now.
    package func vouch(for chain: [[UInt8]], key: [UInt8], at now: Date) throws(CertificatePath.Fault) -> Date {
        var path = try CertificatePath(chain, key: key, at: now)
        return try path.validUntil(under: self.authorities)
    }
}
