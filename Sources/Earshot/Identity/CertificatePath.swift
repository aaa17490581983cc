import FoundationEssentials
import SwiftASN1
import X509

/// The certificates that a peer has presented, followed in that order up to an authority (RFC 5280 section 6, RFC 8446 section 4.4.2).
///
/// There is no path search: each certificate must be signed by the next one, until an authority has signed one. The work is therefore
/// proportional to the length of the chain, not to the number of possible paths. A chain with a repeated name or key is refused. BoringSSL
/// accepts RSA keys of at most 8,192 bits, so the costs of signatures do not differ much.
///
/// A chain with name constraints is refused. Names have no meaning for Earshot, and a constraint that is not evaluated must not count as
/// satisfied.
package struct CertificatePath {
    /// The reason why a chain leads to no authority.
    package enum Fault: Error, Hashable, CustomStringConvertible {
        case count
        case size
        case unreadable
        case otherKey
        case repeated
        case outOfDate
        case notUnderstood
        case mayNotSign
        case weakSignature
        case wrongSignature
        case tooMuchWork
        case noAuthority

        package var description: String {
            switch self {
            case .count: "there is none, or there are more than \(EarshotLimits.chainCertificates) certificates"
            case .size: "the certificates take more than \(EarshotLimits.chainBytes) bytes"
            case .unreadable: "a certificate cannot be read, or its key is of no known kind"
            case .otherKey: "the certificate belongs to another key than the proven one"
            case .repeated: "a name or a key comes twice"
            case .outOfDate: "a certificate is not within its dates"
            case .notUnderstood: "a certificate limits names, or has a critical extension that is not known here"
            case .mayNotSign: "a certificate may not sign the one before it"
            case .weakSignature: "a certificate is signed with SHA-1"
            case .wrongSignature: "a certificate is not signed by the one behind it"
            case .tooMuchWork: "more than \(EarshotLimits.chainSignatures) signatures would have to be checked"
            case .noAuthority: "no authority has signed any of them, in the order in which they are shown"
            }
        }
    }

    /// The certificates, the peer's own first.
    private let chain: [Certificate]
    private let now: Date
    /// The number of signatures checked.
    private var checks = 0

    /// Reads the certificates, and checks everything that needs no signature.
    init(_ shown: [[UInt8]], key: [UInt8], at now: Date) throws(Fault) {
        guard (1...EarshotLimits.chainCertificates).contains(shown.count) else { throw .count }
        guard shown.reduce(0, { $0 + $1.count }) <= EarshotLimits.chainBytes else { throw .size }
        let chain: [Certificate]
        let ownKey: [UInt8]
        do {
            chain = try shown.map { try Certificate(derEncoded: $0) }
            ownKey = try chain[0].publicKey.serializeAsPEM().derBytes
        } catch {
            throw .unreadable
        }
        guard ownKey == key else { throw .otherKey }
        guard Set(chain.map(\.subject)).count == chain.count, Set(chain.map(\.publicKey)).count == chain.count else { throw .repeated }
        self.chain = chain
        self.now = now
    }

    /// Returns the time until which all certificates, and the authority's own, are valid.
    mutating func validUntil(under authorities: [DistinguishedName: [Certificate]]) throws(Fault) -> Date {
        var end = Date.distantFuture
        try self.check(0)
        for (depth, certificate) in self.chain.enumerated() {
            end = min(end, certificate.notValidAfter)
            for authority in authorities[certificate.issuer] ?? [] {
                guard authority.isValid(at: self.now), authority.maySign(over: self.authoritiesBelow(depth + 1)) else { continue }
                if try self.isSigned(certificate, by: authority) { return min(end, authority.notValidAfter) }
            }
            guard depth + 1 < self.chain.count, self.chain[depth + 1].subject == certificate.issuer else { throw .noAuthority }
            try self.check(depth + 1)
            guard try self.isSigned(certificate, by: self.chain[depth + 1]) else { throw .wrongSignature }
        }
        throw .noAuthority
    }

    /// Checks a certificate without its signature, before its key is used.
    private func check(_ depth: Int) throws(Fault) {
        let certificate = self.chain[depth]
        guard certificate.isValid(at: self.now) else { throw .outOfDate }
        guard certificate.isUnderstood else { throw .notUnderstood }
        guard certificate.signatureAlgorithm != .sha1WithRSAEncryption else { throw .weakSignature }
        guard depth == 0 || certificate.maySign(over: self.authoritiesBelow(depth)) else { throw .mayNotSign }
    }

    private mutating func isSigned(_ certificate: Certificate, by issuer: Certificate) throws(Fault) -> Bool {
        guard self.checks < EarshotLimits.chainSignatures else { throw .tooMuchWork }
        self.checks += 1
        return issuer.publicKey.isValidSignature(certificate.signature, for: certificate)
    }

    /// Returns the number of certificates between the peer's own and the one at `depth` that count towards a limit on the length of the
    /// path (RFC 5280 section 4.2.1.9). A certificate that replaces its authority's key under the same name does not count.
    private func authoritiesBelow(_ depth: Int) -> Int {
        self.chain.prefix(depth).dropFirst().count { $0.subject != $0.issuer }
    }
}

extension Certificate {
    func isValid(at now: Date) -> Bool { self.notValidBefore <= now && now < self.notValidAfter }

    /// Whether the certificate may sign others (RFC 5280 sections 4.2.1.3 and 4.2.1.9), with `authorities` authorities between it and a
    /// peer's own certificate.
    func maySign(over authorities: Int) -> Bool {
        guard self.version == .v3, let constraints = try? self.extensions.basicConstraints else { return false }
        switch constraints {
        case .isCertificateAuthority(let limit): if let limit, limit < authorities { return false }
        case .notCertificateAuthority: return false
        }
        do {
            return try self.extensions.keyUsage?.keyCertSign ?? true
        } catch {
            return false
        }
    }

    /// The critical extensions that are evaluated. A certificate with any other critical extension is refused (RFC 5280 section 4.2).
    fileprivate static let evaluated: [ASN1ObjectIdentifier] = [.X509ExtensionID.basicConstraints, .X509ExtensionID.keyUsage]

    var isUnderstood: Bool {
        guard self.version == .v3 || self.extensions.isEmpty else { return false }
        return self.extensions.allSatisfy {
            $0.oid != .X509ExtensionID.nameConstraints && (!$0.critical || Self.evaluated.contains($0.oid))
        }
    }
}
