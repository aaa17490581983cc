import EarshotSafety
import NIOSSL
import SwiftASN1
import Testing
import X509

import struct FoundationEssentials.Date

@testable import Earshot
@testable import EarshotLocalSend

#if canImport(Glibc)
    import Glibc
#endif

@Suite struct CertificateTests {
    @Test func `the certificate is made once, for its owner alone`() throws {
        try withDirectory { directory in
            let first = try DeviceCertificate.load(from: directory)
            let path = directory + "/" + DeviceCertificate.fileName
            var status = stat()
            #expect(stat(path, &status) == 0)
            #expect(status.st_mode & 0o777 == 0o600)
            let second = try DeviceCertificate.load(from: directory)
            #expect(first.id == second.id)
            #expect(first.fingerprint == first.fingerprint.uppercased())
            #expect(first.fingerprint.utf8.count == 64)
            #expect(chmod(path, 0o644) == 0)
            #expect(throws: EarshotError.self) { try DeviceCertificate.load(from: directory) }
        }
    }

    @Test func `the certificate is one that other implementations accept`() throws {
        let certificate = try Certificate(derEncoded: try DeviceCertificate.load(from: nil).certificate.toDERBytes())
        #expect(certificate.version == .v3)
        #expect(certificate.publicKey.isValidSignature(certificate.signature, for: certificate))
        #expect(certificate.signatureAlgorithm == .sha256WithRSAEncryption)
        #expect(certificate.notValidBefore == Date(timeIntervalSince1970: 157_766_400))
        #expect(certificate.notValidAfter.timeIntervalSince1970 > 60_000_000_000)
    }

    @Test func `a damaged certificate is not replaced`() throws {
        try withDirectory { directory in
            let path = directory + "/" + DeviceCertificate.fileName
            let first = try DeviceCertificate.makePEM()
            let second = try DeviceCertificate.makePEM()
            let mark = "-----BEGIN CERTIFICATE-----"
            guard let key = first.firstRange(of: mark), let certificate = second.firstRange(of: mark) else {
                Issue.record("no certificate")
                return
            }
            let mixed = String(first[..<key.lowerBound]) + String(second[certificate.lowerBound...])
            for text in ["", "x", String(first[..<key.lowerBound]), String(first[key.lowerBound...]), mixed] {
                try DurableFile.write(Array(text.utf8), to: path)
                #expect(throws: EarshotError.self) { try DeviceCertificate.load(from: directory) }
            }
        }
    }

    private func withDirectory(_ body: (String) throws -> Void) throws {
        var template = Array("/tmp/earshot-localsend-XXXXXX".utf8CString)
        guard let made = mkdtemp(&template) else {
            Issue.record("no directory")
            return
        }
        let directory = String(cString: made)
        defer {
            unlink(directory + "/" + DeviceCertificate.fileName)
            rmdir(directory)
        }
        try body(directory)
    }
}
