import Earshot
import Foundation
import Testing

@testable import MultipeerConnectivity

/// The identity of a peer, and the parts of it that may leave the machine.
@Suite struct PeerIDTests {
    private func archived(_ peer: MCPeerID) throws -> Data {
        try NSKeyedArchiver.archivedData(withRootObject: peer, requiringSecureCoding: true)
    }

    private func unarchived(_ data: Data) throws -> MCPeerID? { try NSKeyedUnarchiver.unarchivedObject(ofClass: MCPeerID.self, from: data) }

    @Test func equalityIsByKey() throws {
        let (one, other) = (MCPeerID(displayName: "x"), MCPeerID(displayName: "x"))
        #expect(one != other && one == one && one.copy() as? MCPeerID == one)
        let seen = MCPeerID(id: one.id, displayName: "another name")
        #expect(seen == one && seen.hash == one.hash && Set([one, seen, other]).count == 2)
        #expect(!one.isEqual("x") && !one.isEqual(nil))
        #expect(MCPeerID(id: one.id, displayName: "").displayName == one.id.description)
    }

    @Test func anArchiveHoldsNoKey() throws {
        let peer = MCPeerID(displayName: "Zoë's host")
        let archive = try self.archived(peer)
        defer { try? FileManager.default.removeItem(at: KeyFiles.directory.appendingPathComponent("\(peer.id).pem")) }
        #expect(archive.range(of: Data("PRIVATE KEY".utf8)) == nil)
        let back = try #require(try self.unarchived(archive))
        #expect(back == peer && back.displayName == "Zoë's host")
        // The key is on this machine, so the peer is our own again.
        #expect(back.identity?.id == peer.id)
        let file = KeyFiles.directory.appendingPathComponent("\(peer.id).pem")
        #expect(try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? NSNumber == 0o600)
        // A key file that others can read is ignored.
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file.path)
        #expect(back.identity == nil && peer.identity != nil)
        try FileManager.default.removeItem(at: file)
        #expect(try self.unarchived(archive)?.identity == nil)
    }

    @Test func aDamagedArchiveIsNone() throws {
        let archive = try self.archived(MCPeerID(id: PeerID(subjectPublicKeyInfo: [1]), displayName: "x"))
        #expect(try self.unarchived(archive)?.identity == nil)
        for length in stride(from: 0, to: archive.count, by: 7) { #expect((try? self.unarchived(archive.prefix(length))) == nil) }
        #expect((try? self.unarchived(Data("garbage".utf8))) == nil)
    }

    @Test func invalidArgumentsEndTheProgram() async {
        await #expect(processExitsWith: .failure) { _ = MCPeerID(displayName: "") }
        await #expect(processExitsWith: .failure) { _ = MCPeerID(displayName: String(repeating: "x", count: 64)) }
        await #expect(processExitsWith: .success) { _ = MCPeerID(displayName: String(repeating: "x", count: 63)) }
        await #expect(processExitsWith: .failure) {
            _ = MCSession(peer: MCPeerID(id: PeerID(subjectPublicKeyInfo: [1]), displayName: "x"))
        }
        await #expect(processExitsWith: .failure) {
            _ = MCSession(peer: MCPeerID(displayName: "x"), securityIdentity: [1], encryptionPreference: .none)
        }
        await #expect(processExitsWith: .failure) { _ = MCNearbyServiceBrowser(peer: MCPeerID(displayName: "x"), serviceType: "no_type") }
        await #expect(processExitsWith: .success) {
            let browser = MCNearbyServiceBrowser(peer: MCPeerID(displayName: "x"), serviceType: "My-Type")
            guard browser.serviceType == "my-type" else { exit(1) }
        }
    }
}
