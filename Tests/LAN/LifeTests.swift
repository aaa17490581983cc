import EarshotClient
import Foundation
import Testing

extension LAN {
    @Suite struct Life {
        @Test func sessionOutlivesEitherDaemon() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                let session = try await alice.sessions().map(\.id)
                for killed in [bob, alice] {
                    try await killed.restart()
                    let back = ContinuousClock.now
                    // Sending waits for the connection's return, within its deadline, without a new invitation.
                    try await alice.expect(0, "send", "bob", "after \(killed.name)")
                    measured("a message goes after \(killed.name)'s daemon was killed and answers again", ContinuousClock.now - back)
                    try await bob.expect(0, "send", "alice", "and back")
                    #expect(try await bob.receive(1).map { String(decoding: $0.body, as: UTF8.self) } == ["after \(killed.name)"])
                    #expect(try await alice.receive(1).map { String(decoding: $0.body, as: UTF8.self) } == ["and back"])
                }
                #expect(try await alice.sessions().map(\.id) == session)
                #expect(try await bob.sessions().map(\.id) == session)
                #expect(try await bob.invitations().isEmpty)
            }
        }

        @Test func sessionOutlivesTheCable() async throws {
            try await Laboratory.run { laboratory in
                try await laboratory.ownHost("dave", "10.77.0.104")
                let alice = try await laboratory.daemon("alice")
                let dave = try await laboratory.daemon("dave", environment: ["EARSHOT_INVITATIONS_FROM_UNKNOWN": "accept"])
                try await alice.awaitPeer(dave)
                try await alice.expect(0, "invite", "dave")
                try await laboratory.lab("link", "dave", "down")
                try await alice.expect(75, "send", "dave", "into the void", "--timeout", "1")
                try await laboratory.lab("link", "dave", "up")
                let back = ContinuousClock.now
                try await alice.expect(0, "send", "dave", "over the cable", "--timeout", "60")
                measured("a message goes after the cable's return", ContinuousClock.now - back)
                #expect(try await alice.sessions().count == 1)
            }
        }

        @Test func termEndsItInOrder() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                let events = try bob.begin(["events"])
                let began = ContinuousClock.now
                #expect(try await bob.stop() == 0)
                let taken = ContinuousClock.now - began
                measured("SIGTERM with a session and a reader of events", taken)
                #expect(taken < .seconds(5))
                _ = await events.outcome()
                #expect(!FileManager.default.fileExists(atPath: bob.socket), "the socket goes with it")
                try await bob.expect(69, "status")
                // The stop did not end the session.
                #expect(try await alice.sessions().count == 1)
                try await bob.start()
                try await bob.awaitConnected(to: alice)
            }
        }

        /// Stuck parties do not delay the end: a peer that stopped in the middle, a reader that does not read, a sender that waits.
        @Test func termWaitsForNobody() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                let guardian = try alice.begin(["events"]).pid
                let children = "/proc/\(guardian)/task/\(guardian)/children"
                let bobsPID = try #require(bob.pid)
                kill(bobsPID, SIGSTOP)
                defer { kill(bobsPID, SIGCONT) }
                // The process is a child of the `timeout` that guards it.
                var reader: pid_t?
                try await eventually("the reader runs") {
                    reader = pid_t((try? String(contentsOfFile: children, encoding: .utf8))?.split(separator: " ").first ?? "")
                    let program = reader.flatMap { try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\($0)/exe") }
                    return program?.hasSuffix("/earshot") == true
                }
                let readersPID = try #require(reader)
                kill(readersPID, SIGSTOP)
                defer { kill(readersPID, SIGCONT) }
                let file = "\(alice.place)/large"
                try Data(count: 64 << 20).write(to: URL(fileURLWithPath: file))
                let sender = try alice.begin(["send", "bob", "is anyone there", "--timeout", "60"])
                let upload = try alice.begin(["file", "send", "bob", file])
                try await eventually("the file waits for its peer") { try await !alice.files().isEmpty }

                let began = ContinuousClock.now
                #expect(try await alice.stop() == 0)
                let taken = ContinuousClock.now - began
                measured("SIGTERM with a stopped peer, a stopped reader, a message and a file under way", taken)
                #expect(taken < .seconds(5))
                #expect(await sender.status() != 0)
                // Otherwise the command would wait for the daemon's return.
                upload.signal(SIGINT)
                #expect(await upload.status() == 130)
            }
        }

        @Test func secondDaemonIsRefused() async throws {
            try await Laboratory.run { laboratory in
                let alice = try await laboratory.daemon("alice")
                let pid = try #require(alice.pid)
                let second = try laboratory.start(
                    on: "alice",
                    ["\(Laboratory.binaries)/earshotd", "--state-directory", "\(alice.place)/state", "--socket", "\(alice.place)/other"])
                let outcome = await second.outcome()
                #expect(outcome.status != 0 && outcome.status < 128, "\(outcome)")
                #expect(outcome.errors.contains("\(pid)"), "it names the process that holds the state: \(outcome.errors)")

                let third = try laboratory.start(
                    on: "alice",
                    ["\(Laboratory.binaries)/earshotd", "--state-directory", "\(alice.place)/state2", "--socket", alice.socket])
                let other = await third.outcome()
                #expect(other.status != 0 && other.status < 128, "\(other)")
                #expect(other.errors.contains("\(pid)"), "it names the process that holds the socket: \(other.errors)")
                try await alice.expect(0, "status")
            }
        }

        @Test func twoOnOneMachineWithNothingButLoopback() async throws {
            try await Laboratory.run { laboratory in
                try await laboratory.ownHost("lonely", "10.77.0.105", "--no-bus")
                try await laboratory.lab("host", "exec", "lonely", "--", "ip", "link", "delete", "eth0")
                let one = try await laboratory.daemon("one", on: "lonely", arguments: ["--discovery", "embedded"])
                let began = ContinuousClock.now
                let two = try await laboratory.daemon("two", on: "lonely", arguments: ["--discovery", "embedded"])
                try await one.awaitPeer(two)
                try await two.awaitPeer(one)
                measured("two daemons on loopback see each other", ContinuousClock.now - began)
                #expect(try await one.status().discovery.backend == "embedded")
                let asked = try one.begin(["invite", "two"])
                try await two.awaitInvitation(from: one)
                try await two.expect(0, "accept", "one")
                #expect(await asked.outcome().status == 0)
                try await one.expect(0, "send", "two", "so close")
                #expect(try await two.receive(1).map { String(decoding: $0.body, as: UTF8.self) } == ["so close"])
            }
        }
    }
}
