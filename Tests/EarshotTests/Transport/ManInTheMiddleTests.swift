import EarshotWire
import Foundation
import Testing

@testable import Earshot

/// An attacker in the middle talks to two nodes. Neither accepts the attacker as the other, nothing is disclosed, and nothing is stored.
@Suite(.timeLimit(.minutes(2))) struct ManInTheMiddleTests {
    /// Alice invites bob through a proxy, and fails. If the proxy only answers as another machine, alice searches for bob until the
    /// invitation expires.
    private func attack(
        _ encryption: EncryptionPreference, as identity: Identity?, isAnother: Bool = false,
        _ rewrite: @escaping TerminatingProxy.Rewrite
    ) async throws -> EarshotError.Code? {
        let alice = try await TestNode("alice") { $0.encryption = encryption }
        let bob = try await TestNode("bob") {
            $0.encryption = encryption
            $0.fromUnknown = .accept
        }
        let proxy = try await TerminatingProxy(to: bob.port, as: identity, rewrite)
        alice.discovery.tell(.found(.embedded, bob.sighting(port: proxy.port)))
        try await alice.found(bob)
        let before = (alice.storeBytes(), bob.storeBytes())
        let timeout = Duration.seconds(isAnother ? 2 : 30)
        let sent = try await alice.node.invite(bob.node.id.description, context: Array("secret".utf8), timeout: timeout)
        let decided = try await alice.node.outcome(of: sent.id)
        #expect(decided.state == (isAnother ? .timedOut : .failed), "\(decided.errorMessage ?? "")")
        #expect(proxy.invitationsSeen == 0)
        #expect(await bob.node.invitations(all: true).isEmpty)
        #expect(await alice.node.sessions().isEmpty)
        #expect(await bob.node.sessions().isEmpty)
        #expect(alice.storeBytes() == before.0 && bob.storeBytes() == before.1, "the store changes only by a decision")
        await alice.stop()
        await bob.stop()
        await proxy.stop()
        return decided.error
    }

    /// The attacker's changes of the hellos.
    enum Hellos: CaseIterable, Sendable {
        /// Each side gets the other's hello.
        case asTheyAre
        /// The listener gets the attacker's hello, and the dialler gets the listener's.
        case ownToTheListener
        /// Both sides get the attacker's hello.
        case ownToBoth
    }

    /// The attacker terminates both TLS connections with a new key.
    @Test(arguments: Hellos.allCases) func whoeverTerminatesTLSIsFound(_ hellos: Hellos) async throws {
        let mallory = try RawPeer.makeIdentity()
        let code = try await self.attack(.required, as: mallory, isAnother: hellos == .ownToBoth) { frame, isFromDialler in
            guard case .hello(let hello) = frame, hellos == .ownToBoth || (hellos == .ownToTheListener && isFromDialler) else {
                return frame
            }
            var own = hello
            own.publicKey = mallory.publicKey
            own.signatureScheme = .ecdsaSecp256r1SHA256
            return .hello(own)
        }
        #expect(code == (hellos == .ownToBoth ? .timedOut : .identityMismatch))
    }

    /// A field of a hello.
    enum Field: CaseIterable, Sendable {
        case versions, key, scheme, nonce, service, name, anExtension

        func changed(_ hello: Hello, key: [UInt8]) -> Hello {
            var hello = hello
            switch self {
            case .versions: hello.versions = hello.versions.lowerBound...(hello.versions.upperBound + 1)
            case .key: hello.publicKey = key
            case .scheme: hello.signatureScheme = .ecdsaSecp384r1SHA384
            case .nonce: hello.nonce[0] ^= 1
            case .service: hello.serviceType = (try? ServiceType("other")) ?? hello.serviceType
            case .name: hello.displayName = (try? DisplayName("mallory")) ?? hello.displayName
            case .anExtension: hello.extensions.append(HelloExtension(type: 0x7FFF, data: [1]))
            }
            return hello
        }
    }

    /// In plaintext, an attacker may change all bytes. Each side signs all fields of both hellos.
    @Test(arguments: Field.allCases, [true, false]) func aChangedFieldOfAHelloIsFound(_ field: Field, _ isDiallers: Bool) async throws {
        let key = try RawPeer.makeIdentity().publicKey
        let isAnother = field == .key && !isDiallers
        let code = try await self.attack(.none, as: nil, isAnother: isAnother) { frame, isFromDialler in
            guard case .hello(let hello) = frame, isFromDialler == isDiallers else { return frame }
            return .hello(field.changed(hello, key: key))
        }
        let expected: EarshotError.Code =
            switch field {
            case .service: .serviceMismatch
            // The scheme no longer matches the key, which is detected before any proof.
            case .scheme: .unsupported
            case .key where isAnother: .timedOut
            case .versions, .key, .nonce, .name, .anExtension: .identityMismatch
            }
        #expect(code == expected, "\(field)")
    }

    /// Both sides know the attacker's key under the other's name, and the attacker relays the comparison of digits. The comparison is
    /// bound to each connection.
    @Test func aRelayedComparisonIsFound() async throws {
        func part(of raw: RawPeer) async throws -> VerificationFrame {
            try await raw.next { if case .verification(let frame) = $0 { frame } else { nil } }
        }
        let (alice, bob) = (try await TestNode("alice"), try await TestNode("bob"))
        let mallory = try RawPeer.makeIdentity()
        let toAlice = try await RawPeer(to: alice, as: mallory, name: "bob")
        let toBob = try await RawPeer(to: bob, as: mallory, name: "alice")
        try await toAlice.prove()
        try await toBob.prove()
        try await toAlice.roundTrip()
        try await toBob.roundTrip()
        _ = try await alice.node.verify("bob", timeout: .seconds(300))
        try await toBob.send(.verification(try await part(of: toAlice)))
        try await toBob.roundTrip()
        _ = try await bob.node.verify("alice", timeout: .seconds(300))
        try await toAlice.send(.verification(try await part(of: toBob)))
        let reveal = try await part(of: toAlice)
        #expect(try await alice.node.verification("bob").digits != nil)
        try await toBob.send(.verification(reveal))
        #expect(await toBob.refusal() == .protocolViolation)
        let outcome = try await bob.event { kind -> Verification? in
            if case .verificationChanged(let verification) = kind, verification.state == .mismatched { verification } else { nil }
        }
        #expect(outcome.digits == nil && outcome.peerID == mallory.id)
        #expect(try await bob.node.peer("alice").verified == .mismatched)
        let error = await #expect(throws: EarshotError.self) { try await bob.node.setTrust(.trusted, for: "alice") }
        #expect(error?.code == .forbidden)
        await toAlice.close()
        await alice.stop()
        await bob.stop()
    }
}
