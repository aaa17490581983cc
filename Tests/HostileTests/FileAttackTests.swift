import CLinux
import EarshotSafety
import EarshotWire
import Foundation
import NIOCore
import Synchronization
import Testing

/// Attacks with files, by the content of transfers and by entries that are planted on disk meanwhile.
extension HostileTests {
    @Suite struct Files {
        private let settings = "[invitations]\nfrom_unknown = accept\n"

        private func offer(
            _ peer: WirePeer, _ session: SessionID, _ name: String, size: UInt64, kind: ResourceOffer.Kind = .file
        ) throws -> (id: ResourceID, refusal: WireErrorCode?) {
            let id = ResourceID.random()
            try peer.send(.resource(.offer(ResourceOffer(session: session, id: id, kind: kind, size: size, name: name))))
            let refusal = try peer.next { frame -> WireErrorCode?? in
                switch frame {
                case .resource(.accept(let accept)) where accept.id == id: .some(nil)
                case .resource(.refuse(let refuse)) where refuse.id == id: .some(refuse.refusal.code)
                default: nil
                }
            }
            return (id, refusal)
        }

        private static func digest(of text: String) -> [UInt8]? {
            guard let state = earshot_xxh3_create() else { return nil }
            defer { earshot_xxh3_free(state) }
            var digest = [UInt8](repeating: 0, count: 16)
            earshot_xxh3_update(state, text, text.utf8.count)
            earshot_xxh3_digest(state, &digest)
            return digest
        }

        private func spool(_ daemon: VictimDaemon) -> [String] {
            ["partial", "complete"].flatMap {
                (try? FileManager.default.contentsOfDirectory(atPath: "\(daemon.place)/state/spool/\($0)")) ?? []
            }
        }

        @Test("received name escapes the folder: every hostile name is refused, and nothing is written")
        func hostileNamesAreRefused() throws {
            let daemon = try VictimDaemon(settings: self.settings)
            let peer = try WirePeer(port: daemon.port).prove()
            let session = try peer.join()
            for name in HostileText.names {
                #expect(try self.offer(peer, session, name, size: 10).refusal == .nameRejected, "\(name.debugDescription)")
            }
            #expect(self.spool(daemon) == [])
            #expect(daemon.isAlive)
        }

        @Test("disk fill: 2^63 declared, and a gigabyte where a kilobyte was declared")
        func nothingBeyondTheDeclaredSizeIsWritten() throws {
            let daemon = try VictimDaemon(settings: self.settings)
            // Each strike comes from a new peer, which has a session, and loses its connection.
            try Attack(daemon: daemon, isByStrangers: false).run("disk fill", count: Scale.of(50)) { number in
                let peer = try WirePeer(port: daemon.port).prove()
                let session = try peer.join()
                let huge = try self.offer(peer, session, "huge", size: UInt64(Int64.max)).refusal
                #expect(huge == .noSpace || huge == .tooLarge)
                // Earlier peers have left at most one kilobyte each.
                #expect(self.spool(daemon).count <= number)
                let (id, refusal) = try self.offer(peer, session, "small", size: 1024)
                #expect(refusal == nil)
                let chunk = ByteBuffer(repeating: 1, count: 1024)
                try peer.send(.resource(.chunk(ResourceChunk(id: id, offset: 0, data: chunk))))
                let more = ByteBuffer(repeating: 2, count: WireLimits.chunkData)
                let began = ContinuousClock.now
                var isTaken = true
                for number in 0..<4_096 where isTaken {
                    let offset = 1024 + UInt64(number * WireLimits.chunkData)
                    isTaken = try peer.send(.resource(.chunk(ResourceChunk(id: id, offset: offset, data: more))))
                }
                #expect(try peer.refusal() == .protocolViolation)
                #expect(ContinuousClock.now - began < .seconds(10), "the connection is closed at declared + 1")
                let file = "\(daemon.place)/state/spool/partial/\(id)"
                #expect((try? FileManager.default.attributesOfItem(atPath: file)[.size] as? Int) ?? 0 <= 1024)
            }
        }

        @Test("time of check, time of use: file and link are swapped while files are put into the directory")
        func swappedLinksAreNotFollowed() throws {
            let daemon = try VictimDaemon(settings: self.settings + "[resources]\ndirectory = /tmp\non_conflict = overwrite\n") { place in
                try FileManager.default.createDirectory(atPath: "\(place)/in", withIntermediateDirectories: true)
            }
            let place = daemon.place
            let directory = "\(place)/in"
            let conf = VictimDaemon.text("\(place)/conf").replacingOccurrences(of: "= /tmp", with: "= \(directory)")
            try conf.write(toFile: "\(place)/conf", atomically: true, encoding: .utf8)
            kill(daemon.pid, SIGHUP)
            let precious = "\(place)/precious"
            try "precious".write(toFile: precious, atomically: false, encoding: .utf8)
            let swapping = Swapping()
            try withExtendedLifetime(daemon) {
                swapping.start(precious, "\(directory)/f")
                defer { swapping.stop() }
                let peer = try WirePeer(port: daemon.port).prove()
                let session = try peer.join()
                // For a minute at full scale, as the list says; otherwise for a few files.
                let (began, least) = (ContinuousClock.now, Scale.of(400))
                var sent = 0
                while sent < least || Scale.isFull && ContinuousClock.now - began < .seconds(60) {
                    sent += 1
                    let (id, refusal) = try self.offer(peer, session, "f", size: 4)
                    try #require(refusal == nil)
                    let hash = try #require(Self.digest(of: "evil"))
                    try peer.send(
                        .resource(.chunk(ResourceChunk(id: id, offset: 0, data: ByteBuffer(string: "evil")))),
                        .resource(.end(ResourceEnd(id: id, algorithm: .xxh3, digest: hash))))
                    try peer.next { frame -> Void? in
                        switch frame {
                        case .resource(.done(id)), .resource(.refuse): ()
                        default: nil
                        }
                    }
                }
            }
            #expect(VictimDaemon.text(precious) == "precious", "0 escapes in \(swapping.count) swaps")
            #expect(daemon.isAlive)
        }

        @Test(
            "second line of defence: with the first one switched off by a planted link, nothing is written outside",
            .enabled(if: Confinement.isAvailable, "skipped: this kernel has no Landlock"))
        func aPlantedLinkLeadsNowhere() throws {
            let outside = "\(NSTemporaryDirectory())earshot-outside-\(UUID().uuidString.prefix(8))"
            try FileManager.default.createDirectory(atPath: outside, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(atPath: outside) }
            let daemon = try VictimDaemon(settings: self.settings) { place in
                try FileManager.default.createDirectory(atPath: "\(place)/state/spool", withIntermediateDirectories: true)
                try FileManager.default.createSymbolicLink(atPath: "\(place)/state/spool/partial", withDestinationPath: outside)
            }
            let peer = try WirePeer(port: daemon.port).prove()
            let session = try peer.join()
            #expect(try self.offer(peer, session, "innocent", size: 10).refusal != nil)
            #expect(try FileManager.default.contentsOfDirectory(atPath: outside) == [])
            // All threads except the one that starts threads for a user's directory.
            let threads = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(daemon.pid)/task")
            for thread in threads {
                let status = VictimDaemon.text("/proc/\(daemon.pid)/task/\(thread)/status")
                let isOutside = status.hasPrefix("Name:\tearshot-outside")
                #expect(status.contains("NoNewPrivs:\t1") != isOutside, "\(status.prefix(40))")
            }
            #expect(daemon.isAlive)
        }
    }
}

/// Replaces a file with a link repeatedly, until told to stop.
private final class Swapping: Sendable {
    private let isOver = Atomic(false)
    private let swaps = Atomic(0)
    private let isEnded = Atomic(false)

    var count: Int { self.swaps.load(ordering: .relaxed) }

    func start(_ target: String, _ place: String) {
        Thread.detachNewThread {
            while !self.isOver.load(ordering: .relaxed) {
                unlink(place)
                symlink(target, place)
                self.swaps.add(1, ordering: .relaxed)
            }
            self.isEnded.store(true, ordering: .relaxed)
        }
    }

    func stop() {
        self.isOver.store(true, ordering: .relaxed)
        while !self.isEnded.load(ordering: .relaxed) { usleep(1_000) }
    }
}
