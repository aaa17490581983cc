import EarshotWire
import Foundation
import Logging
import NIOCore
import NIOEmbedded
import NIOPosix
import OrderedCollections
import Synchronization
import Testing

@testable import Earshot
@testable import EarshotCore

/// Configured peers, whose names the test resolves.
@Suite(.timeLimit(.minutes(1))) struct NodeConfiguredTests {
    /// Resolves names that end in `.test`, each to a port on loopback or not at all.
    private final class Names: Sendable {
        private let ports = Mutex<[String: UInt16]>([:])
        let asked = Box<[String]>([])
        /// The number of successful lookups.
        let resolved = Box(0)

        func set(_ host: String, _ port: UInt16?) { self.ports.withLock { $0[host] = port } }

        var lookup: HostLookup {
            HostLookup { peer in
                self.asked.withLock { $0.append(peer.host) }
                let count = self.asked.value.count
                guard let port = self.ports.withLock({ $0[peer.host] }),
                    let address = PeerAddress(host: "127.0.0.1", interface: "", port: port)
                else { return .failure(EarshotError(.unavailable, "the name \(peer.host) does not resolve, try \(count)")) }
                self.resolved.withLock { $0 += 1 }
                return .success([address])
            }
        }
    }

    private func node(
        _ peers: [String], names: Names? = nil, configure: (inout Node.Configuration) -> Void = { _ in }
    ) async throws -> TestNode {
        let configured = try peers.map { try ConfiguredPeer($0) }
        return try await TestNode("alice") {
            $0.configuredPeers = configured
            $0.lookup = names?.lookup
            configure(&$0)
        }
    }

    private func proven(_ node: TestNode, _ id: PeerID) async throws -> Peer {
        try await node.event { kind -> Peer? in
            switch kind {
            case .peerFound(let peer), .peerChanged(let peer): peer.id == id && peer.proven && peer.presence == .nearby ? peer : nil
            default: nil
            }
        }
    }

    private func failure(_ node: TestNode, _ id: PeerID) async throws -> Peer.Failure {
        try await node.event { kind -> Peer.Failure? in
            switch kind {
            case .peerFound(let peer), .peerChanged(let peer): peer.id == id ? peer.error : nil
            default: nil
            }
        }
    }

    @Test(arguments: ["127.0.0.1", "[::1]", "localhost"]) func withAndWithoutAnId(host: String) async throws {
        let bob = try await TestNode("bob")
        for id in ["", "\(bob.node.id)@", "\(bob.node.id.description.lowercased())@"] {
            let alice = try await self.node(["\(id)\(host):\(bob.port)"])
            let peer = try await self.proven(alice, bob.node.id)
            #expect(peer.name == "bob")
            #expect(peer.sources == [.configured])
            #expect(peer.addresses.last == "\(host):\(bob.port)")
            #expect(peer.trust == .unknown)
            // By its proven name.
            let sent = try await alice.node.invite("bob", context: [], timeout: .seconds(60))
            let received = try await bob.event { kind -> Invitation? in
                if case .invitationReceived(let invitation) = kind, invitation.peerID == alice.node.id { invitation } else { nil }
            }
            _ = try await bob.node.respond(to: received.id, .accept, always: false)
            #expect(try await alice.node.outcome(of: sent.id).state == .accepted)
            await alice.stop()
        }
        await bob.stop()
    }

    /// Two peers that listen on the same port of different hosts are distinguished.
    @Test func eachAnswersForItsOwnEntry() async throws {
        let (bob, carol) = try await (TestNode("bob"), TestNode("carol"))
        let names = Names()
        names.set("bob.test", bob.port)
        names.set("carol.test", carol.port)
        let alice = try await self.node(["bob.test:47110", "carol.test:47110"], names: names)
        _ = try await (self.proven(alice, bob.node.id), self.proven(alice, carol.node.id))
        #expect(try await alice.node.peer("bob").addresses.contains("bob.test:47110"))
        #expect(try await !alice.node.peer("bob").addresses.contains("carol.test:47110"))
        #expect(try await alice.node.peer("carol").addresses.contains("carol.test:47110"))
        await alice.stop()
        await bob.stop()
        await carol.stop()
    }

    @Test func severalOfOneKeyAreOneRow() async throws {
        let bob = try await TestNode("bob")
        let entries = ["127.0.0.1:\(bob.port)", "localhost:\(bob.port)", "\(bob.node.id)@[::1]:\(bob.port)"]
        let alice = try await self.node(entries)
        let all = Set(["127.0.0.1:\(bob.port)", "localhost:\(bob.port)", "[::1]:\(bob.port)"])
        try await alice.event { kind -> Void? in
            switch kind {
            case .peerFound(let peer), .peerChanged(let peer): all.isSubset(of: peer.addresses) ? () : nil
            default: nil
            }
        }
        #expect(await alice.node.peers().map(\.id) == [bob.node.id])
        await alice.stop()
        await bob.stop()
    }

    /// A peer that is configured without its id has connected meanwhile. It proves itself without superseding the existing connection,
    /// whose streams continue.
    @Test(arguments: [EncryptionPreference.required, .none]) func whoeverIsConnectedIsFoundWithoutANewConnection(
        encryption: EncryptionPreference
    ) async throws {
        let names = Names()
        let peer = try ConfiguredPeer("bob.test:1")
        let alice = try await self.node([peer.description], names: names) { $0.encryption = encryption }
        let bob = try await TestNode("bob") { $0.encryption = encryption }
        alice.sees(bob)
        bob.sees(alice)
        try await alice.found(bob)
        try await bob.found(alice)
        try await agree(alice, bob)
        let standing = try #require(await alice.node.connection(to: bob.node.id)).id
        names.set("bob.test", bob.port)
        await alice.node.dialAnew(peer)
        try await eventually("it is one row") { try await alice.node.peer("bob").addresses.contains("bob.test:1") }
        #expect(await alice.node.connection(to: bob.node.id)?.id == standing)
        #expect(await bob.node.peers().map(\.id) == [alice.node.id])
        #expect(try await alice.send("still here", to: bob).recipients.map(\.status) == [.delivered])
        #expect(await alice.node.connection(to: bob.node.id)?.id == standing)
        await alice.stop()
        await bob.stop()
    }

    @Test func anotherKeyIsAnIdentityMismatchThatIsShownAndLoggedOnce() async throws {
        let (bob, carol) = try await (TestNode("bob"), TestNode("carol"))
        let loop = NIOAsyncTestingEventLoop()
        let logged = Box<[String]>([])
        let peer = try ConfiguredPeer("\(carol.node.id)@127.0.0.1:\(bob.port)")
        let alice = try await TestNode("alice", logger: Logger(label: "alice") { _ in Recorder(lines: logged) }) {
            $0.configuredPeers = [peer]
            $0.timers = Timers(on: loop)
        }
        #expect(try await self.failure(alice, carol.node.id).code == .identityMismatch)
        let row = try #require(await alice.node.peers().first)
        #expect(row.presence == .away && row.state == .notConnected && !row.proven)
        #expect(row.addresses == ["127.0.0.1:\(bob.port)"])
        #expect(await alice.node.peers().count == 1, "who answered there instead is nobody we asked for")
        for _ in 0..<3 { await loop.advanceTime(by: .seconds(5)) }
        // An invitation fails immediately with the reason, and no stranger is invited instead.
        let sent = try await alice.node.invite(carol.node.id.description, context: [], timeout: .seconds(60))
        let decided = try await alice.node.outcome(of: sent.id)
        #expect(decided.state == .failed)
        #expect(decided.error == .identityMismatch)
        #expect(await bob.node.invitations(all: true).isEmpty)
        #expect(logged.value.filter { $0.contains("configured") && $0.contains("identity-mismatch") }.count == 1, "\(logged.value)")
        await alice.stop()
        await bob.stop()
        await carol.stop()
        await loop.end()
    }

    /// One state directory on two machines, or the node's own address in the settings: there is no row and no loop, and the log explains
    /// it.
    @Test func itsOwnKeyIsToldOnce() async throws {
        let bob = try await TestNode("bob")
        let state = try StateDirectory()
        try FileManager.default.copyItem(atPath: bob.state.path + "/identity.pem", toPath: state.path + "/identity.pem")
        let loop = NIOAsyncTestingEventLoop()
        let logged = Box<[String]>([])
        let peer = try ConfiguredPeer("127.0.0.1:\(bob.port)")
        let copy = try await TestNode("copy", in: state, logger: Logger(label: "copy") { _ in Recorder(lines: logged) }) {
            $0.configuredPeers = [peer]
            $0.timers = Timers(on: loop)
        }
        #expect(copy.node.id == bob.node.id)
        try await eventually("it is logged") { logged.value.contains { $0.contains("configured") } }
        for _ in 0..<3 { await loop.advanceTime(by: .seconds(60)) }
        let lines = logged.value.filter { $0.contains("configured") }
        #expect(lines.count == 1 && lines[0].contains("identity-mismatch") && lines[0].contains("copy of its state directory"), "\(lines)")
        for node in [bob, copy] {
            #expect(await node.node.peers().isEmpty)
            await node.stop()
        }
        await loop.end()
    }

    /// `invite` keeps trying. Here, the name resolves only after a while.
    @Test func anInvitationWaitsForAPeerThatIsNotThereYet() async throws {
        let bob = try await TestNode("bob")
        let names = Names()
        let loop = NIOAsyncTestingEventLoop()
        let alice = try await self.node(["\(bob.node.id)@bob.test:1"], names: names) { $0.timers = Timers(on: loop) }
        #expect(try await self.failure(alice, bob.node.id).message.contains("bob.test"))
        let sent = try await alice.node.invite(bob.node.id.description, context: [], timeout: .seconds(60))
        names.set("bob.test", bob.port)
        // The clock advances only to the next dial. The duration of the dial depends on the machine, not on the invitation.
        try await eventually("bob is dialled") {
            await loop.advanceTime(by: .milliseconds(20))
            return names.resolved.value > 0
        }
        try await eventually("bob is asked") { await !bob.node.invitations(all: false).isEmpty }
        _ = try await bob.node.respond(to: try await bob.invitation().id, .accept, always: false)
        #expect(try await alice.node.outcome(of: sent.id).state == .accepted)
        #expect(try await alice.node.peer("bob").error == nil)
        await alice.stop()
        await bob.stop()
        await loop.end()
    }

    /// The delays between dials, each shortened by this machine's id, at their limits, and the last one, which repeats.
    @Test func aConfiguredPeerIsDialledAfterEachDelay() async throws {
        let names = Names()
        let loop = NIOAsyncTestingEventLoop()
        let peer = try ConfiguredPeer("\(peerID(9))@nobody.test:1")
        let alice = try await self.node([peer.description], names: names) { $0.timers = Timers(on: loop) }
        let delays = EarshotLimits.redialDelays.dropFirst() + [.seconds(5), .seconds(5)]
        #expect(EarshotLimits.redialDelays.max() == .seconds(5), "back within 10 s of the path's return")
        for (index, delay) in delays.enumerated() {
            // Published when the next dial is scheduled.
            try await alice.event { kind -> Void? in
                if case .peerChanged(let row) = kind, row.error?.message.hasSuffix("try \(index + 1)") == true { () } else { nil }
            }
            let pause = TimeAmount(delay - delay * Int(alice.node.id.bytes[index + 1]) / 512)
            await loop.advanceTime(by: pause - .nanoseconds(1))
            try await self.settle(alice)
            #expect(await alice.node.isDialling(peer) == false, "not before \(pause) of \(delay)")
            await loop.advanceTime(by: .nanoseconds(1))
        }
        try await eventually("the last is dialled too") { names.asked.value.count == delays.count + 1 }
        await alice.stop()
        await loop.end()
    }

    /// Waits until the node has handled everything that was due before.
    private func settle(_ node: TestNode) async throws {
        let mark = UUID().uuidString
        node.discovery.tell(.status(DiscoveryStatus(backend: .embedded, state: .unavailable, error: mark)))
        try await node.event { kind -> Void? in
            if case .discoveryChanged(let status) = kind, status.error == mark { () } else { nil }
        }
    }

    @Test func aPeerThatTheSettingsDropIsLetGo() async throws {
        let bob = try await TestNode("bob")
        let alice = try await self.node(["\(bob.node.id)@127.0.0.1:1"])
        _ = try await self.failure(alice, bob.node.id)
        await alice.node.configure([])
        #expect(await alice.node.peers().isEmpty)
        await alice.node.configure([try ConfiguredPeer("127.0.0.1:\(bob.port)")])
        #expect(try await self.proven(alice, bob.node.id).name == "bob")
        await alice.node.configure([])
        #expect(try await alice.node.peer("bob").sources == [])
        await alice.stop()
        await bob.stop()
    }
}

@Suite(.timeLimit(.minutes(1))) struct HostLookupTests {
    @Test(arguments: [("127.0.0.1", "127.0.0.1:9"), ("::1", "[::1]:9"), ("fe80::1%lo", "[fe80::1%lo]:9")])
    func numericHostsAskNobody(host: String, expected: String) async throws {
        let text = host.contains(":") ? "[\(host)]:9" : "\(host):9"
        let addresses = try await HostLookup().addresses(of: try ConfiguredPeer(text))
        #expect(addresses.map(\.description) == [expected])
        #expect(addresses.first?.socketAddress != nil)
    }

    @Test func aNameThatDoesNotResolve() async throws {
        let error = await #expect(throws: EarshotError.self) {
            _ = try await HostLookup().addresses(of: try ConfiguredPeer("no-such-name.invalid:9"))
        }
        #expect(error?.code == .unavailable)
        #expect(error?.message.contains("no-such-name.invalid") == true)
    }

    /// A silent name server blocks one thread per host, and no other lookups.
    @Test func oneQuestionAHostAndNobodyWaitsAfterAStop() async throws {
        let (silence, end) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let asked = Box(0)
        let lookup = HostLookup { _ in
            asked.withLock { $0 += 1 }
            silence.wait()
            end.signal()
            return .success([])
        }
        let peer = try ConfiguredPeer("bob.test:9")
        await withTaskGroup(of: EarshotError.Code?.self) { group in
            for _ in 0..<10 {
                group.addTask {
                    do throws(EarshotError) {
                        _ = try await lookup.addresses(of: peer)
                        return nil
                    } catch {
                        return error.code
                    }
                }
            }
            try? await eventually("the question is asked") { asked.value > 0 }
            lookup.stop()
            for await code in group { #expect(code == .unavailable) }
        }
        #expect(asked.value == 1)
        silence.signal()
        await Task.detached { end.wait() }.value
        let late = await #expect(throws: EarshotError.self) { _ = try await lookup.addresses(of: peer) }
        #expect(late?.code == .unavailable)
    }
}

/// Records the log.
struct Recorder: LogHandler {
    let lines: Box<[String]>
    var logLevel = Logger.Level.info
    var metadata: Logger.Metadata = [:]
    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { self.metadata[key] }
        set { self.metadata[key] = newValue }
    }
    func log(event: LogEvent) {
        self.lines.withLock { $0.append("\(event.message) \(event.metadata ?? [:])") }
    }
}

extension Node {
    fileprivate func isDialling(_ peer: ConfiguredPeer) -> Bool? { self.core.configuredDials[peer]?.reach.isDialling }

    /// Schedules the redial that is normally due later.
    fileprivate func dialAnew(_ peer: ConfiguredPeer) {
        self.core.deadlines.set(.redialConfigured(peer), at: self.transport.timers.now)
        self.handle(Input.deadline)
    }
}
