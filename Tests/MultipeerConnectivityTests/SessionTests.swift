import Earshot
import Foundation
import Testing

@testable import MultipeerConnectivity

/// Peers that find, invite and join each other, and exchange data.
@Suite(.timeLimit(.minutes(2)), .serialized) struct SessionTests {
    /// Two programs, of which the first invites.
    private func pair(
        accepts: Bool = true, _ encryption: (MCEncryptionPreference, MCEncryptionPreference) = (.optional, .optional)
    ) async -> (Program, Program) {
        let type = freshType()
        let alice = Program("alice", type: type, invites: true, encryption: encryption.0)
        let bob = Program("bob", type: type, accepts: accepts, encryption: encryption.1, info: ["room": "kitchen", "id": "7", "_x": ""])
        alice.browser.startBrowsingForPeers()
        bob.advertiser.startAdvertisingPeer()
        return (alice, bob)
    }

    @Test func anInvitationIsAccepted() async throws {
        let (alice, bob) = await self.pair()
        await alice.connected([bob])
        await bob.connected([alice])
        #expect(alice.told.first == .found(bob.peer, ["room": "kitchen", "id": "7", "_x": ""]))
        #expect(bob.told.first == .invited(alice.peer, nil))
        for (one, other) in [(alice, bob), (bob, alice)] {
            #expect(one.states(of: other) == [.connecting, .connected])
            #expect(one.session.connectedPeers == [other.peer])
            #expect(one.session.connectedPeers.first?.displayName == other.peer.displayName)
        }
        // A certificate with the key that the id is of.
        #expect(alice.told.contains { if case .certificate(bob.peer, let count) = $0 { count > 200 } else { false } })
    }

    @Test func itIsDeclined() async throws {
        let (alice, bob) = await self.pair(accepts: false)
        await alice.until(.state(bob.peer, .notConnected))
        #expect(alice.states(of: bob) == [.notConnected] && bob.states(of: alice).isEmpty)
        #expect(alice.session.connectedPeers.isEmpty)
    }

    @Test func dataComesWholeAndInOrder() async throws {
        let (alice, bob) = await self.pair()
        await alice.connected([bob])
        await bob.connected([alice])
        let long = Data((0..<(5 * 1024 * 1024 / 4)).flatMap { number in withUnsafeBytes(of: UInt32(number).littleEndian, Array.init) })
        let sent = [Data("one".utf8), long, Data(), Data("two".utf8), long.prefix(1 << 20), Data("three".utf8)]
        for data in sent { try alice.session.send(data, toPeers: [bob.peer], with: .reliable) }
        await bob.until { $0.count { if case .data = $0 { true } else { false } } == sent.count }
        #expect(bob.data == sent)
        try bob.session.send(Data("back".utf8), toPeers: bob.session.connectedPeers, with: .reliable)
        await alice.until(.data(Data("back".utf8), bob.peer))
        // Between the two of them nothing is lost on the way.
        try bob.session.send(Data("now".utf8), toPeers: [alice.peer], with: .unreliable)
        await alice.until(.data(Data("now".utf8), bob.peer))
    }

    /// A program may send on any thread. Data that is longer than a message still arrives in one piece.
    @Test func twoThreadsSendAtOnce() async throws {
        let programs = await mesh(2)
        let (one, other) = (programs[0], programs[1])
        @Sendable func send(_ all: [Data]) async throws {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                Thread {
                    do {
                        for data in all { try one.session.send(data, toPeers: [other.peer], with: .reliable) }
                        continuation.resume()
                    } catch {
                        continuation.resume(throwing: error)
                    }
                }.start()
            }
        }
        let long = (0..<UInt8(8)).map { Data(repeating: $0, count: 4 << 20) }
        let short = (0..<2_000).map { Data("\($0)".utf8) }
        async let first: Void = send(long)
        async let second: Void = send(short)
        _ = try await (first, second)
        await other.until { told in
            told.contains(.state(one.peer, .notConnected))
                || told.count { if case .data = $0 { true } else { false } } == long.count + short.count
        }
        #expect(other.data.filter { $0.count > 1 << 20 } == long)
        #expect(other.data.filter { $0.count <= 1 << 20 } == short)
    }

    @Test func theLimitsOfSending() async throws {
        let (alice, bob) = await self.pair()
        await alice.connected([bob])
        let whole = Data(count: OutgoingData.limit)
        func code(_ data: Data, _ peers: [MCPeerID], _ mode: MCSessionSendDataMode = .reliable) -> MCError.Code? {
            do { try alice.session.send(data, toPeers: peers, with: mode) } catch { return (error as? MCError)?.code ?? .unknown }
            return nil
        }
        #expect(code(Data(), []) == .invalidParameter)
        #expect(code(whole + [0], [bob.peer]) == .invalidParameter)
        #expect(code(Data(), [MCPeerID(displayName: "x")]) == .notConnected)
        #expect(code(Data(), [bob.peer, MCPeerID(displayName: "x")]) == .notConnected)
        #expect(code(Data(count: 1 << 20), [bob.peer], .unreliable) == nil)
        #expect(code(Data(count: (1 << 20) + 1), [bob.peer], .unreliable) == .invalidParameter)
        // The largest data may be sent while nothing else is in flight. Then no byte is accepted until the receiver has taken some.
        #expect(code(whole, [bob.peer]) == nil)
        #expect(code(Data([1]), [bob.peer]) == .unavailable)
        await bob.until { $0.contains { if case .data(let data, _) = $0 { data.count == whole.count } else { false } } }
        // The sender learns of that a moment later.
        while code(Data([1]), [bob.peer]) == .unavailable { await Task.yield() }
        await bob.until(.data(Data([1]), alice.peer))
    }

    /// The node refuses the configuration of a session: running advertisers and browsers report it, and so do those that start later.
    @Test func advertisersAndBrowsersReportARefusedPreference() async throws {
        let (alice, bob) = await self.pair()
        await alice.connected([bob])
        let engine = alice.session.owner.engine
        engine.post { engine in
            await engine.configure { configuration in
                configuration.encryption = .required
                // The node's own key, which a program must not set.
                configuration.discoveryInfo = ["id": "x"]
            }
        }
        await alice.until(.browsingFailed(.unavailable))
        alice.advertiser.startAdvertisingPeer()
        await alice.until(.advertisingFailed(.unavailable))
        // The next preference is accepted, and advertising works again.
        alice.advertiser.stopAdvertisingPeer()
        engine.post { engine in await engine.configure { $0.encryption = .required } }
        alice.advertiser.startAdvertisingPeer()
        bob.browser.startBrowsingForPeers()
        await bob.until { $0.contains { if case .found(alice.peer, _) = $0 { true } else { false } } }
        #expect(alice.told.count { $0 == .advertisingFailed(.unavailable) } == 1)
    }

    @Test func leavingIsToldOnceAndNothingAfterwards() async throws {
        let (alice, bob) = await self.pair()
        await alice.connected([bob])
        await bob.connected([alice])
        alice.session.disconnect()
        #expect(alice.session.connectedPeers.isEmpty)
        #expect(throws: MCError(.notConnected)) { try alice.session.send(Data(), toPeers: [bob.peer], with: .reliable) }
        await bob.until(.state(alice.peer, .notConnected))
        #expect(bob.states(of: alice) == [.connecting, .connected, .notConnected])
        #expect(alice.states(of: bob) == [.connecting, .connected])
        // And they come together again.
        alice.browser.invitePeer(bob.peer, to: alice.session, withContext: Data("again".utf8), timeout: 0)
        await bob.until(.invited(alice.peer, Data("again".utf8)))
        await bob.until { told in told.count { $0 == .state(alice.peer, .connected) } == 2 }
        await alice.until { told in told.count { $0 == .state(bob.peer, .connected) } == 2 }
    }

    @Test func aSessionThatIsLetGoOfIsLeft() async throws {
        let type = freshType()
        let bob = Program("bob", type: type)
        bob.start()
        var alice: Program? = Program("alice", type: type, invites: true)
        alice?.start()
        let peer = try #require(alice?.peer)
        await bob.until(.state(peer, .connected))
        alice = nil
        await bob.until(.state(peer, .notConnected))
        await bob.until(.lost(peer))
    }

    @Test(arguments: [MCEncryptionPreference.required, .optional, .none], [MCEncryptionPreference.required, .optional, .none])
    func encryptionFollowsBothPreferences(_ ours: MCEncryptionPreference, _ theirs: MCEncryptionPreference) async throws {
        let (alice, bob) = await self.pair((ours, theirs))
        guard Set([ours, theirs]) != [.required, .none] else {
            await alice.until(.state(bob.peer, .notConnected))
            #expect(!alice.states(of: bob).contains(.connected) && !bob.states(of: alice).contains(.connected))
            return
        }
        await alice.connected([bob])
        let isPlain = ours == .none || theirs == .none
        #expect(alice.told.contains { if case .certificate(_, let count) = $0 { (count == 0) == isPlain } else { false } })
    }

    // MARK: More than two

    @Test(arguments: [3, 8]) func everybodyInvitesEverybody(_ count: Int) async throws {
        let programs = await mesh(count)
        for program in programs {
            try program.session.send(Data(program.peer.displayName.utf8), toPeers: program.session.connectedPeers, with: .reliable)
        }
        for program in programs {
            let others = programs.filter { $0 !== program }
            await program.until { told in others.allSatisfy { told.contains(.data(Data($0.peer.displayName.utf8), $0.peer)) } }
            for other in others { #expect(program.states(of: other) == [.connecting, .connected], "\(program.peer) of \(other.peer)") }
            #expect(program.data.count == count - 1)
        }
    }

    /// The time that eight peers in one process need to form a mesh, and the resources that each takes: figures for the log.
    @Test func eightInOneProcess() async throws {
        func memory() throws -> Int {
            let text = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ")
            return (Int(text[1]) ?? 0) - (Int(text[2]) ?? 0)
        }
        let (before, began) = (try memory(), ContinuousClock.now)
        let programs = await mesh(8)
        let (after, time) = (try memory(), ContinuousClock.now - began)
        print("measured: 8 peers in one process are one mesh: \(time / .seconds(1)) s, \((after - before) * 4 / 8) KiB of memory each")
        #expect(programs.allSatisfy { $0.session.connectedPeers.count == 7 })
    }

    /// A program that joins one of the others is connected to all of them, although only one of them browsed for it.
    @Test func theOthersAreIntroduced() async throws {
        let type = freshType()
        let programs = (0..<4).map { Program("p\($0)", type: type) }
        for program in programs { program.advertiser.startAdvertisingPeer() }
        for (one, other) in zip(programs, programs.dropFirst()) {
            one.browser.startBrowsingForPeers()
            await one.until { $0.contains { if case .found(other.peer, _) = $0 { true } else { false } } }
            one.browser.stopBrowsingForPeers()
            one.browser.invitePeer(other.peer, to: one.session, withContext: nil, timeout: 20)
        }
        for program in programs { await program.connected(programs.filter { $0 !== program }) }
        // Each program was invited at most once. The other connections came by introduction.
        for program in programs {
            #expect(program.told.count { if case .invited = $0 { true } else { false } } <= 1)
        }
    }

    /// Programs on one machine share an address. Each invitation waits for the program's answer, however long that takes.
    @Test func aFullSessionMayWaitForOneAnswer() async throws {
        let type = freshType()
        let host = Program("host", type: type)
        host.holdAnswers()
        host.advertiser.startAdvertisingPeer()
        let guests = (1..<kMCSessionMaximumNumberOfPeers).map { Program("p\($0)", type: type, invites: true) }
        for guest in guests { guest.browser.startBrowsingForPeers() }
        for guest in guests { await host.until(.invited(guest.peer, nil)) }
        host.answer()
        await host.connected(guests)
        for guest in guests { #expect(!guest.states(of: host).contains(.notConnected)) }
    }

    /// A program that only advertises cannot reconnect to a peer whose connection is gone.
    @Test func aPeerThatIsGoneWhenItIsAccepted() async throws {
        let host = Program("host", type: freshType())
        host.holdAnswers()
        host.advertiser.startAdvertisingPeer()
        let guest = try await Guest(of: host)
        await host.until { $0.contains { if case .invited = $0 { true } else { false } } }
        await guest.end()
        host.answer()
        await host.until { $0.contains { if case .state(_, .notConnected) = $0 { true } else { false } } }
        let states = host.told.compactMap { if case .state(_, let state) = $0 { state } else { nil } }
        #expect(states == [.connecting, .notConnected])
    }

    /// A program that is killed and starts again under its archived id is a new connection, and gets nothing that was for the old one.
    @Test func aProgramThatStartsAgain() async throws {
        let host = Program("host", type: freshType())
        host.advertiser.startAdvertisingPeer()
        let first = try await Guest(of: host)
        try await first.join(host)
        await host.until(.state(first.peer, .connected))
        await first.end()
        try? host.session.send(Data("for the first".utf8), toPeers: [first.peer], with: .reliable)
        let second = try await Guest(of: host, as: first.peer)
        try await second.join(host)
        await host.until { told in told.count { $0 == .state(first.peer, .connected) } == 2 }
        let states = host.told.compactMap { if case .state(_, let state) = $0 { state } else { nil } }
        #expect(states == [.connecting, .connected, .notConnected, .connecting, .connected])
        #expect(host.told.count { $0 == .invited(first.peer, nil) } == 2)
        try host.session.send(Data("for the second".utf8), toPeers: [first.peer], with: .reliable)
        while try await second.data().isEmpty { await Task.yield() }
        #expect(try await second.data() == ["for the second"])
        await second.end()
    }

    /// Neither program hears that the other is connected before both have accepted the other's certificate.
    @Test(arguments: [true, false]) func aCertificateThatIsRefused(_ byInviter: Bool) async throws {
        let type = freshType()
        let alice = Program("alice", type: type, invites: true, takesCertificates: !byInviter)
        let bob = Program("bob", type: type, takesCertificates: byInviter)
        alice.browser.startBrowsingForPeers()
        bob.advertiser.startAdvertisingPeer()
        for (one, other) in [(alice, bob), (bob, alice)] {
            await one.until(.state(other.peer, .notConnected))
            #expect(one.states(of: other) == [.connecting, .notConnected])
        }
    }

    /// Each invitation is the program's to judge, however many come within a second.
    @Test func manyInvitationsInASecond() async throws {
        let (alice, bob) = await self.pair(accepts: false)
        for count in 1...12 {
            await alice.until { told in told.count { $0 == .state(bob.peer, .notConnected) } == count }
            #expect(bob.told.count { $0 == .invited(alice.peer, nil) } == count)
            alice.browser.invitePeer(bob.peer, to: alice.session, withContext: nil, timeout: 20)
        }
    }

    @Test func aNinthIsRefused() async throws {
        let programs = await mesh(kMCSessionMaximumNumberOfPeers)
        let ninth = Program("ninth", type: programs[0].advertiser.serviceType, invites: true)
        ninth.start()
        for program in programs { await ninth.until { $0.contains(.state(program.peer, .notConnected)) } }
        #expect(ninth.session.connectedPeers.isEmpty)
        for program in programs { #expect(program.session.connectedPeers.count == 7 && !program.states(of: ninth).contains(.connected)) }
        // Until there is a place.
        programs[7].stop()
        for program in programs.prefix(7) { await program.until(.state(programs[7].peer, .notConnected)) }
        ninth.browser.invitePeer(programs[0].peer, to: ninth.session, withContext: nil, timeout: 20)
        await ninth.connected(Array(programs.prefix(7)))
    }

    /// A peer that was invited and does not answer has no place: it may have ended, while it is still announced.
    @Test func aPeerThatDoesNotAnswerHoldsNoPlace() async throws {
        let type = freshType()
        let host = Program("host", type: type, invites: true)
        let silent = Program("silent", type: type)
        silent.holdAnswers()
        silent.advertiser.startAdvertisingPeer()
        host.browser.startBrowsingForPeers()
        await silent.until(.invited(host.peer, nil))
        let guests = (1..<kMCSessionMaximumNumberOfPeers).map { Program("p\($0)", type: type) }
        for guest in guests { guest.advertiser.startAdvertisingPeer() }
        await host.connected(guests)
        for guest in guests { await guest.connected(guests.filter { $0 !== guest } + [host]) }
        // Its invitation has ended with the last place, and its answer is too late.
        await host.until(.state(silent.peer, .notConnected))
        silent.answer()
        guests[0].stop()
        await host.until(.state(guests[0].peer, .notConnected))
        host.browser.invitePeer(silent.peer, to: host.session, withContext: nil, timeout: 20)
        await host.connected([silent])
        #expect(host.states(of: silent) == [.notConnected, .connecting, .connected], "it was not together with the host before")
    }

    /// One peer id is in several sessions, and two ids share one of them.
    @Test func severalSessionsOfOnePeer() async throws {
        let type = freshType()
        let alice = Program("alice", type: type)
        let (bob, carol) = (Program("bob", type: type), Program("carol", type: type))
        let second = MCSession(peer: alice.peer, securityIdentity: nil, encryptionPreference: .optional)
        second.delegate = alice
        alice.browser.startBrowsingForPeers()
        for other in [bob, carol] {
            other.advertiser.startAdvertisingPeer()
            await alice.until { $0.contains { if case .found(other.peer, _) = $0 { true } else { false } } }
        }
        alice.browser.invitePeer(bob.peer, to: alice.session, withContext: nil, timeout: 20)
        alice.browser.invitePeer(carol.peer, to: second, withContext: nil, timeout: 20)
        await alice.connected([bob, carol])
        await bob.connected([alice])
        #expect(alice.session.connectedPeers == [bob.peer] && second.connectedPeers == [carol.peer])
        alice.browser.invitePeer(bob.peer, to: second, withContext: nil, timeout: 20)
        await alice.until(.state(bob.peer, .notConnected))
        #expect(alice.session.connectedPeers == [bob.peer] && second.connectedPeers == [carol.peer])
        second.disconnect()
        await carol.until(.state(alice.peer, .notConnected))
        #expect(bob.session.connectedPeers == [alice.peer])
    }

    // MARK: By other means

    @Test func programsBringTheirPeersTogether() async throws {
        let (alice, bob) = (Program("alice", type: freshType()), Program("bob", type: freshType()))
        let ours = try await alice.session.nearbyConnectionData(forPeer: bob.peer)
        let theirs = try await bob.session.nearbyConnectionData(forPeer: alice.peer)
        alice.session.connectPeer(bob.peer, withNearbyConnectionData: theirs)
        bob.session.connectPeer(alice.peer, withNearbyConnectionData: ours)
        await alice.connected([bob])
        await bob.connected([alice])
        alice.session.cancelConnectPeer(bob.peer)
        await bob.until(.state(alice.peer, .notConnected))
        bob.session.connectPeer(alice.peer, withNearbyConnectionData: Data("{}".utf8))
        await bob.until { told in told.count { $0 == .state(alice.peer, .notConnected) } == 2 }
    }

    @Test func theAssistantAsksItsHandler() async throws {
        let type = freshType()
        let (alice, bob) = (Program("alice", type: type, invites: true), Program("bob", type: freshType()))
        let assistant = MCAdvertiserAssistant(serviceType: type.uppercased(), discoveryInfo: nil, session: bob.session)
        assistant.start()
        alice.browser.startBrowsingForPeers()
        await alice.until(.state(bob.peer, .notConnected))
        assistant.invitationHandler = { peer, _, answer in answer(peer.displayName == "alice") }
        alice.browser.invitePeer(bob.peer, to: alice.session, withContext: nil, timeout: 20)
        await alice.connected([bob])
        assistant.stop()
    }
}
