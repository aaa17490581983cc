import Crypto
import CryptoExtras
import Earshot
import EarshotSafety
import EarshotWire
import FoundationEssentials
import NIOSSL
import SwiftASN1
import X509

/// This machine's key and certificate as a LocalSend device: RSA with 2,048 bits, self-signed, with the dates of LocalSend's own
/// certificates. Earshot's own key is of another kind, and some implementations accept RSA only.
///
/// Other devices know this machine by the SHA-256 of the certificate, so both are made once and kept in the state directory (mode 0600), in
/// one file that cannot be separated.
struct DeviceCertificate: Sendable {
    /// The file name in the state directory.
    static let fileName = "localsend.pem"
    private static let keyBits = 2048
    /// 1975-01-01 and 4096-01-01: other implementations check the dates, and clocks may be wrong.
    private static let notBefore = Date(timeIntervalSince1970: 157_766_400)
    private static let notAfter = Date(timeIntervalSince1970: 67_090_118_400)

    /// The id of this machine as a device.
    let id: PeerID
    let certificate: NIOSSLCertificate
    let key: NIOSSLPrivateKey

    /// The SHA-256 of the certificate as devices write it: 64 upper-case hexadecimal digits.
    var fingerprint: String { self.id.bytes.hexadecimal.uppercased() }

    /// Reads the certificate of a state directory, or makes one if there is none. Without a directory, the certificate lasts as long as
    /// the process.
    /// - Throws: `storage` if the file cannot be read, written or parsed, or if others may read it. A damaged file is never replaced,
    ///   because devices would see a stranger.
    static func load(from directory: String?) throws(EarshotError) -> DeviceCertificate {
        guard let directory else { return try Self.parse(try Self.makePEM(), path: "in memory") }
        let path = directory + "/" + Self.fileName
        if let pem = try IdentityFile.read(path, "the LocalSend certificate", isSecret: true, followsLinks: false) {
            return try Self.parse(pem, path: path)
        }
        let pem = try Self.makePEM()
        do {
            try DurableFile.write(Array(pem.utf8), to: path)
        } catch {
            throw EarshotError(.storage, "cannot keep the LocalSend certificate in \(path.escapedForDisplay): \(error)", underlying: error)
        }
        return try Self.parse(pem, path: path)
    }

    /// Makes a key and its certificate, as one text. This takes some tenths of a second.
    static func makePEM() throws(EarshotError) -> String {
        do {
            let key = try _RSA.Signing.PrivateKey(keySize: .init(bitCount: Self.keyBits))
            let name = try DistinguishedName { CommonName("Earshot") }
            let certificate = try Certificate(
                version: .v3, serialNumber: Certificate.SerialNumber(), publicKey: .init(key.publicKey), notValidBefore: Self.notBefore,
                notValidAfter: Self.notAfter, issuer: name, subject: name, signatureAlgorithm: .sha256WithRSAEncryption,
                extensions: Certificate.Extensions(), issuerPrivateKey: .init(key))
            return key.pemRepresentation + "\n" + (try certificate.serializeAsPEM().pemString) + "\n"
        } catch {
            throw EarshotError(.storage, "cannot make a LocalSend certificate: \(error)", underlying: error)
        }
    }

    private static func parse(_ pem: String, path: String) throws(EarshotError) -> DeviceCertificate {
        do {
            let documents = try PEMDocument.parseMultiple(pemString: pem)
            guard let certificateDocument = documents.first(where: { $0.discriminator == "CERTIFICATE" }),
                let keyDocument = documents.first(where: { $0.discriminator != "CERTIFICATE" })
            else { throw InvalidMessage("a key or a certificate is missing") }
            let certificate = try NIOSSLCertificate(bytes: certificateDocument.derBytes, format: .der)
            let key = try _RSA.Signing.PrivateKey(pemRepresentation: keyDocument.pemString)
            guard try certificate.extractPublicKey().toSPKIBytes() == Array(key.publicKey.derRepresentation) else {
                throw InvalidMessage("the certificate belongs to another key")
            }
            return DeviceCertificate(
                id: PeerID(deviceCertificate: certificateDocument.derBytes), certificate: certificate,
                key: try NIOSSLPrivateKey(bytes: Array(key.derRepresentation), format: .der))
        } catch {
            throw EarshotError(
                .storage,
                "the LocalSend certificate \(path.escapedForDisplay) is damaged (\(error)); "
                    + "restore it from a backup, or remove it to become a new device", underlying: error)
        }
    }
}
