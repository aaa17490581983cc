import Foundation
import NIOSSL
import Testing

/// Certificates that no device has, and bytes that are no certificates.
extension HostileTests.Devices {
    @Test("LocalSend: huge, expired, nameless and unusual certificates") func oddCertificates() throws {
        let victim = try DeviceVictim()
        let authority = try HostileCertificate(subject: "Authority")
        let unusual = try HostileCertificate(.p521)
        let issued = try HostileCertificate(issuer: authority)
        // TLS 1.3 has a list of algorithms for a client's signature, which P-521 is not on.
        let kinds: [(certificate: HostileCertificate, isTaken: Bool, name: String)] = [
            (try HostileCertificate(.p384), true, "P-384"), (unusual, true, "P-521"),
            (try HostileCertificate(.ed25519), false, "Ed25519"), (try HostileCertificate(days: -365 ... -1), true, "expired"),
            (try HostileCertificate(days: 1...365), true, "not yet valid"),
            (try HostileCertificate(subject: nil), true, "without a subject"),
            (try HostileCertificate(subject: "a\u{0}b\u{202E}\u{1B}[1A"), true, "with an escape sequence as its name"),
            (try HostileCertificate(alternativeNames: 500), true, "500 names"),
            (try HostileCertificate(alternativeNames: 3000), false, "3,000 names"),
            (try .ofSize(16 << 10), true, "16 KiB"), (try .ofSize(16 << 10 | 1), false, "16 KiB and a byte"),
            (try HostileCertificate(extensionBytes: 64 << 10), false, "64 KiB"), (issued, true, "signed by an authority"),
            (issued.followed(by: [authority]), true, "with its authority"),
            (issued.followed(by: [HostileCertificate](repeating: authority, count: 15)), true, "16 certificates"),
            (issued.followed(by: [HostileCertificate](repeating: authority, count: 16)), false, "17 certificates"),
            (issued.followed(by: [HostileCertificate](repeating: authority, count: 200)), false, "201 certificates"),
        ]
        try victim.hold("LocalSend certificates") {
            for (minor, version) in [TLSVersion.tlsv12, .tlsv13].enumerated() {
                for (number, kind) in kinds.enumerated() {
                    var device = HostileDevice(victim.port, at: "127.25.\(minor).\(1 + number)", as: kind.certificate)
                    device.version = version
                    let status = try device.register()
                    let isTaken = kind.isTaken && (version == .tlsv12 || kind.certificate.id != unusual.id)
                    #expect(status == (isTaken ? 200 : nil), "\(kind.name), \(version)")
                }
            }
        }
        let taken = Set(kinds.filter(\.isTaken).map { "\($0.certificate.id)" })
        #expect(Set(try victim.devices().map(\.id)) == taken, "each device is listed by its own certificate")
    }

    @Test("LocalSend: bytes that are no certificates") func garbageForCertificates() throws {
        let victim = try DeviceVictim()
        let der = try HostileCertificate().der
        var random = SeededGenerator(seed: 1)
        let junk = (0..<300).map { _ in UInt8.random(in: 0...255, using: &random) }
        let deep = (0..<4_000).flatMap { _ in [0x30, 0x80] as [UInt8] }
        var lists: [[UInt8]] = [
            [], [0], [0, 0, 1], [0, 0, 0], HandmadeHandshake.list([[]]), HandmadeHandshake.list([junk]), HandmadeHandshake.list([deep]),
            HandmadeHandshake.list([der, []]), HandmadeHandshake.list([der, junk]), HandmadeHandshake.list([der + junk]),
            HandmadeHandshake.list([[UInt8](repeating: 0x30, count: 100_000)]),
            HandmadeHandshake.list([[UInt8]](repeating: [0x30, 0], count: 4_000)),
            // Lengths beyond the message.
            [0xFF, 0xFF, 0xFF] + HandmadeHandshake.length(der.count) + der,
            HandmadeHandshake.length(der.count + 3) + [0xFF, 0xFF, 0xFF] + der,
        ]
        for _ in 0..<Scale.of(200) {
            var changed = der
            for _ in 0..<Int.random(in: 1...8, using: &random) {
                changed[Int.random(in: changed.indices, using: &random)] = .random(in: 0...255, using: &random)
            }
            lists.append(HandmadeHandshake.list([Array(changed.prefix(.random(in: 1...der.count, using: &random)))]))
            lists.append(HandmadeHandshake.list([changed]))
        }
        try Attack(daemon: victim.daemon).run("LocalSend garbage for certificates", count: lists.count) { number in
            let handshake = try HandmadeHandshake(to: victim.port, from: "127.26.0.\(1 + number % 200)")
            #expect(handshake.finish(with: lists[number]), "list \(number)")
        }
        #expect(try victim.devices().isEmpty)
        #expect(try HostileDevice(victim.port, as: HostileCertificate()).register() == 200)
    }
}
