import Crypto
import EarshotWire
import Foundation
import NIOCore
import Testing

extension HostileTests {
    /// Every field of every frame whose values reach the API, at its extremes. The values pass through frame, store, JSON, and our own
    /// client, whose listings and watchers must all keep working.
    @Suite struct Extremes {
        /// A client's messages about unreadable values.
        private static let complaints = ["cannot be read", "unknown field", "protocol error", "is missing", "not a time"]

        @Test("values that we store and then cannot read: every field at its extremes, at every command, after a restart too")
        func everyFieldIsReadable() throws {
            let policy = "[invitations]\nfrom_unknown = accept\n"
            let daemon = try VictimDaemon(settings: policy)
            try Self.extremeMessages(daemon)
            try Self.extremeLiveMessages(daemon)
            try Self.extremeResources(daemon)
            try Self.extremeStreams(daemon)
            try Self.extremeReceipts(daemon)
            try Self.extremeInvitations()
            try Self.look(at: daemon)
            // The stored values are read by the next run, and by a client that has not seen them before.
            let again = try VictimDaemon(settings: policy) { place in
                kill(daemon.pid, SIGKILL)
                while daemon.isAlive { usleep(10_000) }
                try FileManager.default.copyItem(atPath: "\(daemon.place)/state", toPath: "\(place)/state")
            }
            try Self.look(at: again)
            let read = try again.earshot("receive", "--json")
            #expect(read.status == 0 && read.output.split(separator: "\n").count == Self.messages.count, "\(read.output.prefix(2000))")
            #expect(try again.earshot("receive").output == "earshot: no unread messages\n", "each was shown, and is read")
            let fetched = NSTemporaryDirectory() + "earshot-extremes-\(UUID().uuidString.prefix(8))"
            try FileManager.default.createDirectory(atPath: fetched, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(atPath: fetched) }
            let files = try again.earshot("file", "get", "-o", fetched)
            #expect(files.status == 0, "\(files.output)")
        }

        /// Runs every listing, as text and as JSON, and every watcher for a second.
        private static func look(at daemon: VictimDaemon) throws {
            let listings = [
                ["status"], ["peers"], ["sessions"], ["invitations"], ["file", "list"], ["stream", "list"],
            ]
            for words in listings.flatMap({ [$0, $0 + ["--json"]] }) {
                let output = try daemon.run(words)
                Self.expectReadable(output, words)
                #expect(!output.hasPrefix("earshot: the daemon's answer"), "earshot \(words): \(output.prefix(500))")
            }
            for words in [["peers", "--watch"], ["invitations", "--watch"], ["file", "list", "--watch"], ["events", "--since", "0"]] {
                Self.expectReadable(try daemon.watch(words), words)
                Self.expectReadable(try daemon.watch(words + ["--json"]), words)
            }
            #expect(try daemon.call("GET", "/v1/messages?state=all&limit=1000").status == 200)
            #expect(daemon.isAlive)
        }

        private static func expectReadable(_ output: String, _ words: [String]) {
            for complaint in Self.complaints {
                #expect(!output.contains(complaint), "earshot \(words.joined(separator: " ")): \(output.prefix(2000))")
            }
            #expect(HostileText.acts(in: output) == nil, "earshot \(words.joined(separator: " "))")
        }

        // MARK: Frames

        /// Returns a peer in a session, with a name as long and as odd as possible.
        private static func member(of daemon: VictimDaemon, _ name: String = HostileText.formats) throws -> (WirePeer, SessionID) {
            let peer = try WirePeer(port: daemon.port, name: name)
            try peer.prove()
            return (peer, try peer.join())
        }

        private static let times: [Int64] = [
            .min, -62_135_596_800_001, -62_135_596_800_000, -1, 0, 253_402_300_799_999, 253_402_300_800_000, .max,
        ]
        private static let types = [
            "~", "text/plain", String(repeating: "~", count: WireLimits.contentType), "a b", "TEXT/", "text/plain; charset=\"\\", "null",
        ]
        private static let bodies: [[UInt8]] = [
            [], [0], [0xFF], Array(HostileText.acts.utf8), Array("\u{2028}\u{0}\"\\".utf8), [0xED, 0xA0, 0x80],
            Array(repeating: 0x1B, count: WireLimits.messageBody),
        ]
        /// Each extreme at least once, with ordinary other fields.
        private static let messages: [(time: Int64, type: String, body: [UInt8])] =
            Self.times.map { ($0, "text/plain", Array("x".utf8)) } + Self.types.map { (0, $0, Array("x".utf8)) }
            + Self.bodies.map { (0, "text/plain", $0) } + Self.bodies.map { (.max, "application/x", $0) }

        private static func extremeMessages(_ daemon: VictimDaemon) throws {
            let (peer, session) = try Self.member(of: daemon, String(repeating: "\u{202E}", count: DisplayName.byteLimit / 3))
            for (number, message) in Self.messages.enumerated() {
                let id = number == 0 ? MessageID(high: 0, low: 0) : number == 1 ? MessageID(high: .max, low: .max) : .random()
                for mode in [MessageFrame.Mode.unreliable, .reliable] {
                    try peer.send(
                        .message(
                            MessageFrame(
                                session: session, id: mode == .reliable ? id : .random(), mode: mode,
                                sequence: number == 0 ? 0 : .max - UInt64(Self.messages.count - number),
                                sentAtMilliseconds: message.time, contentType: message.type, body: ByteBuffer(bytes: message.body))))
                }
                let outcome = try peer.next { frame in
                    if case .messageReceipts(let receipts) = frame { receipts.first { $0.id == id }?.outcome } else { nil }
                }
                #expect(outcome == .delivered, "\(message.time) \(message.type)")
            }
        }

        /// Live readers, the only ones that get unreliable messages. They select this peer, so that the others' messages stay unread.
        private static func extremeLiveMessages(_ daemon: VictimDaemon) throws {
            let (peer, session) = try Self.member(of: daemon)
            let live = try daemon.background(["receive", "--follow", "--from", "\(peer.id)"], seconds: 10)
            let deadline = ContinuousClock.now + .seconds(10)
            while !VictimDaemon.text(live).contains("subscribed"), ContinuousClock.now < deadline {
                // Its output tells whether it is listening yet.
                try peer.send(Self.unreliable("subscribed", 0, session))
                try peer.roundTrip()
                usleep(20_000)
            }
            for time in Self.times { try peer.send(Self.unreliable("live \(time)", time, session)) }
            try peer.send(Self.unreliable("the end", 0, session))
            while !VictimDaemon.text(live).contains("the end"), ContinuousClock.now < deadline { usleep(20_000) }
            for time in Self.times { #expect(VictimDaemon.text(live).contains("live \(time)\n"), "\(time)") }
            Self.expectReadable(VictimDaemon.text(live), ["receive", "--follow"])
        }

        private static func unreliable(_ text: String, _ time: Int64, _ session: SessionID) -> Frame {
            .message(
                MessageFrame(
                    session: session, id: .random(), mode: .unreliable, sequence: .max, sentAtMilliseconds: time, contentType: "text/plain",
                    body: ByteBuffer(string: text)))
        }

        /// The explanations that a peer may give with a refusal, and other possible ends.
        private static let refusals = [
            Refusal(code: WireErrorCode(rawValue: 0), explanation: ""),
            Refusal(code: WireErrorCode(rawValue: .max), explanation: HostileText.acts),
            Refusal(code: .cancelled, explanation: String(repeating: "\u{1B}", count: WireLimits.explanation)),
        ]

        private static func extremeResources(_ daemon: VictimDaemon) throws {
            let (peer, session) = try Self.member(of: daemon)
            func offer(_ kind: ResourceOffer.Kind, _ size: UInt64, _ name: String) throws -> (id: ResourceID, isAccepted: Bool) {
                let id = ResourceID.random()
                try peer.send(.resource(.offer(ResourceOffer(session: session, id: id, kind: kind, size: size, name: name))))
                let isAccepted = try peer.next { frame in
                    switch frame {
                    case .resource(.accept(let accept)) where accept.id == id: true
                    case .resource(.refuse(let refuse)) where refuse.id == id: false
                    default: nil
                    }
                }
                return (id, isAccepted)
            }
            func awaitEnd(_ id: ResourceID) throws -> Bool {
                try peer.next { frame in
                    switch frame {
                    case .resource(.done(id)): true
                    case .resource(.refuse(let refuse)) where refuse.id == id: false
                    case .resource(.cancel(let cancel)) where cancel.id == id: false
                    default: nil
                    }
                }
            }
            let longest = String(repeating: "\u{202E}", count: 80)
            for size in [0, 1, WireLimits.resourceSize] {
                for name in [HostileText.formats, longest, String(repeating: "\u{1B}", count: WireLimits.resourceName)] {
                    for (kind, refusal) in zip([ResourceOffer.Kind.file, .directory, .file], Self.refusals) {
                        let (id, isAccepted) = try offer(kind, size, name)
                        if isAccepted { try peer.send(.resource(.cancel(ResourceRefuse(id: id, refusal: refusal)))) }
                    }
                }
            }
            // Complete resources, with invalid digests and with the right one.
            for digest in [[0xFF], Array(repeating: 0xFF, count: WireLimits.digest), Array(SHA256.hash(data: [UInt8]()))] {
                let (id, isAccepted) = try offer(.file, 0, "empty")
                try #require(isAccepted)
                try peer.send(.resource(.end(ResourceEnd(id: id, algorithm: .sha256, digest: digest))))
                #expect(try awaitEnd(id) == (digest.count == 32))
            }
            let tree = Self.tree(times: [.min, .max, -1, 0])
            let (id, isAccepted) = try offer(.directory, UInt64(tree.count), "old")
            try #require(isAccepted)
            try peer.send(
                .resource(.chunk(ResourceChunk(id: id, offset: 0, data: ByteBuffer(bytes: tree)))),
                .resource(.end(ResourceEnd(id: id, algorithm: .sha256, digest: Array(SHA256.hash(data: tree))))))
            #expect(try awaitEnd(id))
        }

        /// Returns a directory of empty files (`Trees` in the specification), with these times and every permission bit.
        private static func tree(times: [Int64]) -> [UInt8] {
            var entries: [UInt8] = []
            func append(_ value: some FixedWidthInteger) { Swift.withUnsafeBytes(of: value.bigEndian) { entries += $0 } }
            for (number, time) in times.enumerated() {
                append(UInt8(number == 0 ? 1 : 2))
                append(UInt32(0))
                entries += number == 0 ? [0] : [1, UInt8(ascii: "a") + UInt8(number)]
                append(UInt16(0o777))
                append(time)
                append(UInt32(999_999_999))
                if number > 0 { append(UInt64(0)) }
            }
            var bytes = Array("EARTREE1".utf8)
            for count in [times.count, entries.count] { Swift.withUnsafeBytes(of: UInt32(count).bigEndian) { bytes += $0 } }
            return bytes + Array(repeating: 0, count: 8) + entries
        }

        private static func extremeStreams(_ daemon: VictimDaemon) throws {
            let (peer, session) = try Self.member(of: daemon)
            for refusal in Self.refusals {
                for name in ["\u{202E}", String(repeating: "\u{200B}", count: StreamName.byteLimit / 3)] {
                    let id = StreamID.random()
                    try peer.send(.stream(.open(StreamOpen(session: session, id: id, name: try StreamName(name)))))
                    try peer.send(.stream(.abort(StreamRefuse(id: id, refusal: refusal))))
                }
            }
            try peer.roundTrip()
            // A peer that explains its refusal, at the extremes.
            try peer.send(.refusal(Self.refusals[1]))
        }

        private static func extremeReceipts(_ daemon: VictimDaemon) throws {
            let (peer, _) = try Self.member(of: daemon)
            for outcome in [MessageReceipt.Outcome.delivered, .read, .inboxFull, .refused] {
                let sent = try daemon.call("POST", "/v1/messages", json: #"{"to":["\#(peer.id)"],"body":"x","queue":true}"#)
                #expect(sent.status == 202)
                let id = try peer.next { frame in if case .message(let message) = frame { message.id } else { nil } }
                try peer.send(.messageReceipts([MessageReceipt(id: id, outcome: outcome)]))
                try peer.roundTrip()
                #expect(try daemon.call("GET", "/v1/messages/\(id)").status == 200)
                if outcome == .inboxFull { break }
            }
        }

        /// Tests invitations that wait for a user's decision, on a daemon that asks.
        private static func extremeInvitations() throws {
            let daemon = try VictimDaemon()
            let contexts: [[UInt8]] = [
                [], Array(repeating: 0x1B, count: WireLimits.invitationContext), [0xFF, 0xC0], Array(HostileText.acts.utf8),
            ]
            var peers: [WirePeer] = []
            for (number, context) in contexts.enumerated() {
                for timeout in [1, WireLimits.invitationTimeoutMilliseconds] {
                    let peer = try WirePeer(
                        port: daemon.port, name: HostileText.formats, from: "127.0.\(number + 1).\(timeout == 1 ? 1 : 2)")
                    try peer.prove()
                    try peer.send(.invite(Invite(id: .random(), timeoutMilliseconds: timeout, context: context)))
                    try peer.roundTrip()
                    peers.append(peer)
                }
            }
            try withExtendedLifetime(peers) { try Self.look(at: daemon) }
            let waiting = try daemon.earshot("invitations", "--json")
            #expect(waiting.status == 0 && waiting.output.split(separator: "\"pending\"").count == contexts.count + 1, "\(waiting.output)")
        }
    }
}
