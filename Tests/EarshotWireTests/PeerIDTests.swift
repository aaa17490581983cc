import EarshotWire
import Testing

@Suite struct PeerIDTests {
    private static let peer = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567ABCDEFGHIJKLMNOPQRSA"

    @Test func deviceHasAnIDOfItsOwnKind() throws {
        let peer = try #require(PeerID(Self.peer))
        let device = try #require(PeerID("LS-\(Self.peer)"))
        #expect(peer.kind == .earshot)
        #expect(device.kind == .localsend)
        #expect(device.bytes == peer.bytes)
        #expect(device != peer)
        #expect(peer < device)
        #expect(!(device < peer))
        #expect(device.description == "LS-\(Self.peer)")
        #expect(PeerID("ls-\(Self.peer.lowercased())") == device)
        #expect(PeerID(bytes: device.bytes, kind: .localsend) == device)
        #expect(PeerID(bytes: device.bytes) == peer)
    }

    @Test func deviceIDIsTheDigestOfTheCertificate() {
        #expect(PeerID(deviceCertificate: Array("abc".utf8)).bytes == PeerID(subjectPublicKeyInfo: Array("abc".utf8)).bytes)
        #expect(PeerID(deviceCertificate: Array("abc".utf8)).kind == .localsend)
    }

    @Test(arguments: [
        "LS-", "LS-ABC", "LS\(peer)", "LS_\(peer)", "XX-\(peer)", "LS-\(peer)A", "L\u{17F}-\(peer)", "LS-LS-\(peer)",
        // The digest of the id that stands for devices without certificates.
        "LS-\(String(repeating: "A", count: 52))",
    ])
    func otherTextIsNoID(_ text: String) {
        #expect(PeerID(text) == nil)
    }
}
