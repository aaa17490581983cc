import EarshotSafety
import EarshotWire
package import FoundationEssentials
import SwiftASN1
import X509

/// The authorities whose peers are trusted without asking: a peer that shows a certificate which one of them signed, directly or over others,
/// within its dates (RFC 5280 section 6). Over TLS alone, which proves that the peer holds the certificate's key.
package struct CertificateAuthorities: Sendable {
    /// Several may share a name, while a site replaces one by the next.
    private let authorities: [DistinguishedName: [Certificate]]

    /// Whether any is there.
    package var isEmpty: Bool { self.authorities.isEmpty }

    /// Reads PEM files of one or several certificates each.
    /// - Throws: `invalid-parameter`, in words for a person.
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

    /// Looks at the chain that a peer has shown. It takes some milliseconds of computing, and is not for an event loop.
    ///
    /// - Parameters:
    ///   - chain: Certificates in DER, the peer's own first, each signed by the next; the last by one of the authorities.
    ///   - key: The key that the peer has proven, SubjectPublicKeyInfo in DER.
    ///   - now: The time at which it has to be good.
    /// - Returns: Until when it is good.
    /// - Throws: why it leads to none of the authorities, or not now.
    package func vouch(for chain: [[UInt8]], key: [UInt8], at now: Date) throws(CertificatePath.Fault) -> Date {
        var path = try CertificatePath(chain, key: key, at: now)
        return try path.validUntil(under: self.authorities)
    }
}
