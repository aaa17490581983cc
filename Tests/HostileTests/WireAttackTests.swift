import Crypto
import EarshotWire
import Foundation
import NIOCore
import Testing

/// Attacks on the port of a real daemon, by strangers and by peers with a proven key. HostilePeerTests in EarshotTests checks the same
/// rules one by one within one process; here the process must survive.
extension HostileTests {
    @Suite struct Wire {
        @Test("pre-authentication exhaustion: 2,000 idle connections of one byte") func idleConnectionsGiveWayToNewPeers() throws {
            let daemon = try VictimDaemon(settings: "[invitations]\nfrom_unknown = accept\n")
            var held: [PlainSocket] = []
            try Attack(daemon: daemon).run("idle connections", count: 2_000) { number in
                // From as many addresses as the limit per address requires.
                let socket = try PlainSocket(port: daemon.port, from: "127.1.\(number / 800).\(1 + number / 4 % 200)")
                socket.send([WireLimits.preamble[0]])
                held.append(socket)
            }
            // The oldest connections were evicted, and a new peer is admitted at once.
            #expect(held.first?.receive() == [])
            try WirePeer(port: daemon.port, name: "late").prove().roundTrip()
            withExtendedLifetime(held) {}
        }

        @Test("pre-authentication exhaustion: endless hellos, and one byte at a time") func endlessHellosAreCutOff() throws {
            let daemon = try VictimDaemon(settings: "[invitations]\nfrom_unknown = accept\n")
            let header: [UInt8] = [0, 0, 0x20, 0, FrameType.hello.rawValue]
            var slow: [PlainSocket] = []
            try Attack(daemon: daemon).run("endless hellos", count: 60) { number in
                let endless = try PlainSocket(port: daemon.port, from: "127.2.0.\(1 + number)")
                // The first 8 KiB are not a hello, and no later bytes are read.
                let isTaken = endless.send(WireLimits.preamble + header + [UInt8](repeating: 1, count: 1 << 20), patience: 1)
                #expect(!isTaken || endless.receiveAll() != nil)
                let one = try PlainSocket(port: daemon.port, from: "127.3.0.\(1 + number)")
                for byte in WireLimits.preamble { one.send([byte]) }
                slow.append(one)
            }
            for (number, one) in slow.enumerated() where number >= slow.count - 8 {
                for byte in header { one.send([byte]) }
            }
        }

        /// Every boundary length for every type of frame, as a stranger and as a proven peer, one byte at a time.
        @Test("lengths: 0, max, max+1, 2^31-1, 2^31 and 2^32-1 in every frame's header, split at every byte")
        func lengthsAboveTheLimitEndTheConnection() throws {
            let daemon = try VictimDaemon(settings: "[invitations]\nfrom_unknown = accept\n")
            var types = FrameType.allCases.map { ($0.rawValue, UInt32($0.payloadLimit)) }
            types += [(0x7F, 0), (0x80, UInt32(WireLimits.framePayload)), (0xFF, UInt32(WireLimits.framePayload))]
            var strikes: [() throws -> Void] = []
            for (type, limit) in types {
                for length in [limit + 1, 1 << 31 - 1, 1 << 31, .max] as [UInt32] {
                    let bytes = withUnsafeBytes(of: length.bigEndian) { Array($0) } + [type]
                    strikes.append {
                        let stranger = try PlainSocket(port: daemon.port)
                        for byte in WireLimits.preamble + bytes { stranger.send([byte]) }
                        #expect(stranger.receiveAll() != nil, "\(type) of \(length) bytes ends a stranger's connection")
                    }
                }
                // A proven peer may send more, and is told why this frame is refused.
                strikes.append {
                    let peer = try WirePeer(port: daemon.port).prove()
                    for byte in withUnsafeBytes(of: (limit + 1).bigEndian, { Array($0) }) + [type] { peer.socket.send([byte]) }
                    #expect(try peer.refusal() == .protocolViolation, "\(type) of \(limit + 1) bytes")
                }
            }
            // Empty frames, and inner lengths beyond the end of the frame.
            for type in FrameType.allCases where type != .goodbye {
                strikes.append {
                    let peer = try WirePeer(port: daemon.port).prove()
                    peer.socket.send([0, 0, 0, 0, type.rawValue])
                    #expect(try peer.refusal() == .protocolViolation, "\(type) of nothing")
                }
            }
            try Attack(daemon: daemon).run("lengths", count: strikes.count) { try strikes[$0]() }
        }

        @Test("invitation spam: from one key") func invitationsOfOneKey() throws {
            let daemon = try VictimDaemon()
            let peer = try WirePeer(port: daemon.port).prove()
            try Attack(daemon: daemon).run("invitations of one key", count: Scale.of(10_000)) { number in
                try peer.send(.invite(Invite(id: .random(), timeoutMilliseconds: 60_000, context: Array("x".utf8))))
                guard number > 0 else { return }
                try peer.next { frame -> Void? in
                    guard case .inviteAnswer(let answer) = frame, answer.decision == .busy else { return nil }
                    return ()
                }
            }
            #expect(try self.pending(daemon) == 1)
        }

        @Test("invitation spam: from as many keys, and spoofed trust: fresh keys leave the store alone") func invitationsOfManyKeys() throws
        {
            let daemon = try VictimDaemon(settings: "[invitations]\nfrom_unknown = ask\n")
            try Attack(daemon: daemon, memoryLimit: 32 << 20).run("invitations of fresh keys", count: Scale.of(10_000)) { number in
                let stranger = try WirePeer(port: daemon.port, from: "127.4.\(number / 250 % 250).\(1 + number % 250)").prove()
                try stranger.send(.invite(Invite(id: .random(), timeoutMilliseconds: 60_000, context: [])))
                try stranger.roundTrip()
                if number % 20 == 0 { #expect(try self.pending(daemon) <= 32) }
            }
        }

        private func pending(_ daemon: VictimDaemon) throws -> Int {
            struct List: Decodable { let invitations: [Entry] }
            struct Entry: Decodable { let state: String }
            return try daemon.decoded(List.self, at: "/v1/invitations").invitations.count
        }

        @Test("descriptor exhaustion: a flood with 64 descriptors") func theDaemonRecoversFromALackOfDescriptors() throws {
            let daemon = try VictimDaemon(descriptors: 64)
            var flood: [PlainSocket] = []
            // Connections beyond its descriptors and its backlog are never answered, and the test does not wait for them.
            for number in 0..<200 { flood.append(try PlainSocket(port: daemon.port, from: "127.5.0.\(1 + number)")) }
            // Evicted connections have ended after a while, and the remaining ones are idle.
            try daemon.outlasts(&flood, settling: 2_000_000, "descriptor exhaustion") {
                try WirePeer(port: daemon.port, name: "late", from: "127.6.0.1").prove().roundTrip()
            }
            #expect(daemon.isAlive)
        }

        @Test("log injection and flood: failures by the thousand, and newlines in every string") func failuresDoNotFloodTheLog() throws {
            let daemon = try VictimDaemon()
            let before = daemon.log.split(separator: "\n").count
            try Attack(daemon: daemon).run("failed handshakes", count: Scale.of(10_000)) { number in
                let socket = try PlainSocket(port: daemon.port, from: "127.7.0.\(1 + number % 200)")
                socket.send(number % 2 == 0 ? Array("GET / HTTP/1.1\r\n\r\n".utf8) : WireLimits.preamble + [0, 0, 0, 1, 0x7F, 10])
                socket.finishSending()
                _ = socket.receiveAll()
            }
            let peer = try WirePeer(port: daemon.port).prove()
            try peer.send(.refusal(Refusal(code: .declined, explanation: "two\nlines\u{1B}[1A\u{202E}")))
            _ = try peer.refusal()
            let lines = daemon.log.split(separator: "\n")
            #expect(lines.count - before <= 130, "\(lines.count - before) lines, of two labels and a minute and a bit")
            for line in lines { #expect(line.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F || $0 >= 0x80 }, "\(line.debugDescription)") }
            #expect(!daemon.log.unicodeScalars.contains("\u{202E}"))
            #expect(daemon.isAlive)
        }
    }
}
