import Foundation
import Testing

/// Attacks by LocalSend devices on the port of devices. `EarshotLocalSendTests` and the tests of devices in `EarshotCoreTests` check the
/// same rules one by one, with limits and clocks; here the process must survive.
extension HostileTests {
    @Suite struct Devices {
        private static let accepting = "[invitations]\nfrom_unknown = accept\n"

        @Test("LocalSend: names of files that climb, and descriptions that lie") func hostileNamesAreRefused() throws {
            let victim = try DeviceVictim(settings: Self.accepting)
            // Names with one slash are relative paths here.
            let names =
                HostileText.names.filter { $0 != "a/b" && $0 != "a\u{301}/b" }
                + [
                    "../../x", "a/../../x", "a/..", "a//b", "a/./b", String(repeating: "a/", count: 64) + "b",
                    "a/" + String(repeating: "b", count: 256),
                ]
            typealias Strike = (status: Int, run: (HostileDevice) throws -> Int?, name: String)
            var strikes: [Strike] = names.map { name in
                (400, { try $0.offer(["1": HostileDevice.file(name, size: 3)]) }, name.debugDescription)
            }
            let descriptions: [[String: Any]] = [
                ["port": 65_536], ["port": -1], ["alias": ""], ["alias": NSNull()], ["version": 1], ["protocol": "ftp"], ["fingerprint": 3],
            ]
            for changes in descriptions { strikes.append((400, { try $0.register(changes) }, "\(changes)")) }
            let claimed = String(repeating: "AB", count: 32)
            strikes.append((200, { try $0.register(["fingerprint": claimed]) }, "another's fingerprint"))
            let certificate = try HostileCertificate()
            try Attack(daemon: victim.daemon).run("LocalSend names", count: strikes.count) { number in
                let status = try strikes[number].run(HostileDevice(victim.port, at: "127.21.0.\(1 + number)", as: certificate))
                #expect(status == strikes[number].status, "\(strikes[number].name)")
            }
            #expect(victim.spool == [])
            #expect(try victim.devices().isEmpty, "a device whose every description lies is not listed")
        }

        @Test("LocalSend: sizes that lie, in the offer and in the upload") func nothingBeyondTheOfferIsWritten() throws {
            let victim = try DeviceVictim(settings: Self.accepting)
            let certificates = try (0..<8).map { _ in try HostileCertificate() }
            let offers: [(sizes: [String], status: Int)] = [
                (["9223372036854775807"], 507), (["9223372036854775808"], 413), (["18446744073709551616"], 400), (["1e400"], 400),
                (["-1"], 400), (["1.5"], 400), (["\"3\""], 400), (["null"], 400), ([], 400), (["9223372036854775807", "1"], 413),
                (["18446744073709551615", "2"], 413),
            ]
            for (number, offer) in offers.enumerated() {
                let device = HostileDevice(victim.port, at: "127.22.0.\(1 + number)", as: certificates[number % 8])
                var files: [String: Any] = [:]
                for (id, size) in offer.sizes.enumerated() { files["\(id)"] = HostileDevice.file("\(id)", size: "@@\(size)@@") }
                #expect(try device.offer(files) == offer.status, "\(offer.sizes)")
            }
            try victim.hold("LocalSend sizes") {
                for number in 0..<Scale.of(60) {
                    let device = HostileDevice(victim.port, at: "127.22.1.\(1 + number)", as: certificates[number % 8])
                    let names = ["more", "much", "fewer", "chunks"]
                    let files = Dictionary(uniqueKeysWithValues: names.map { ($0, HostileDevice.file("\($0)-\(number)", size: 64) as Any) })
                    let session = try device.session(files)
                    let token = { session.files[$0] ?? "" }
                    // The daemon may close the connection while the rest arrives, and its answer is lost with it.
                    let more = try device.upload(session.sessionId, "more", token("more"), [UInt8](repeating: 1, count: 65))
                    #expect(more == 413 || more == nil)
                    let much = try device.upload(session.sessionId, "much", token("much"), [UInt8](repeating: 1, count: 8 << 20))
                    #expect(much == 413 || much == nil)
                    #expect(try device.upload(session.sessionId, "fewer", token("fewer"), [1, 2, 3]) == 500)
                    #expect(try device.upload(session.sessionId, "fewer", token("fewer"), [UInt8](repeating: 1, count: 64)) == 403)
                    let line = try device.connect()
                    let target = "upload?sessionId=\(session.sessionId)&fileId=chunks&token=\(token("chunks"))"
                    let head = "POST \(HostileDevice.prefix)\(target) HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                    line.send(head + String(repeating: "1\r\nx\r\n", count: 65) + "0\r\n\r\n")
                    #expect([413, nil].contains(line.answer()?.status))
                }
            }
            #expect(victim.spool == [])
            #expect(try victim.files().allSatisfy { $0.state == "failed" })
        }

        /// An upload in chunks of one byte once took 48 s of processor time and 115 MiB of memory for one MiB.
        @Test("LocalSend: an upload in chunks of one byte") func chunksOfOneByte() throws {
            let victim = try DeviceVictim(settings: Self.accepting)
            let device = try HostileDevice(victim.port, as: HostileCertificate())
            let count = Scale.of(4 << 20)
            let session = try device.session(["1": HostileDevice.file("a", size: count)])
            try victim.hold("LocalSend chunks of one byte") {
                let line = try device.connect()
                let target = "upload?sessionId=\(session.sessionId)&fileId=1&token=\(session.files["1"] ?? "")"
                line.send("POST \(HostileDevice.prefix)\(target) HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
                line.send(String(repeating: "1\r\nx\r\n", count: count) + "0\r\n\r\n")
                #expect(line.answer(within: 60)?.status == 200)
            }
            #expect(try victim.files().map(\.state) == ["completed"])
        }

        @Test("LocalSend: missing, wrong and others' tokens, from other addresses and certificates")
        func tokensBelongToTheirOffer() throws {
            let victim = try DeviceVictim(settings: Self.accepting)
            let device = try HostileDevice(victim.port, at: "127.23.0.1", as: HostileCertificate())
            let other = try HostileDevice(victim.port, at: "127.23.0.2", as: HostileCertificate())
            let session = try device.session(["1": HostileDevice.file("a", size: 3), "2": HostileDevice.file("b", size: 3)])
            let others = try other.session(["1": HostileDevice.file("c", size: 3)])
            let token = try #require(session.files["1"])
            let bytes: [UInt8] = [1, 2, 3]
            var moved = device
            moved.address = "127.23.0.3"
            var changed = device
            changed.certificate = other.certificate
            var hidden = device
            hidden.certificate = nil
            try Attack(daemon: victim.daemon).run("LocalSend tokens", count: 10) { number in
                #expect(try device.upload(session.sessionId, "1", "", bytes) == 400)
                #expect(try device.upload(session.sessionId, "1", session.files["2"] ?? "", bytes) == 403)
                #expect(try device.upload(session.sessionId, "1", others.files["1"] ?? "", bytes) == 403)
                #expect(try device.upload(others.sessionId, "1", others.files["1"] ?? "", bytes) == 403)
                #expect(try device.upload(session.sessionId, "3", token, bytes) == 403)
                #expect(try device.upload(String(repeating: "0", count: 36), "1", token, bytes) == 403)
                for thief in [moved, changed, hidden, other] {
                    #expect(try thief.upload(session.sessionId, "1", token, bytes) == 403)
                    try thief.post("cancel?sessionId=\(session.sessionId)")
                    try thief.post("cancel")
                }
            }
            #expect(try victim.files().isEmpty)
            // The token still works for its owner, once.
            #expect(try device.upload(session.sessionId, "1", token, bytes) == 200)
            #expect(try device.upload(session.sessionId, "1", token, bytes) == 403)
            #expect(try victim.files().map(\.state) == ["completed"])
        }

        @Test("LocalSend: data before an offer is accepted, and after it is rejected") func nothingIsTakenWithoutConsent() throws {
            let victim = try DeviceVictim()
            let device = try HostileDevice(victim.port, as: HostileCertificate())
            let line = try device.connect()
            line.send(HostileDevice.bytes("prepare-upload", try device.offerBody(["1": HostileDevice.file("a", size: 3)])))
            let deadline = ContinuousClock.now + .seconds(10)
            while try victim.pending() == 0, ContinuousClock.now < deadline { usleep(10_000) }
            #expect(try victim.pending() == 1)
            #expect(try device.upload("x", "1", "y", [1, 2, 3]) == 403)
            #expect(try device.offer(["1": HostileDevice.file("b", size: 3)]) == 409)
            let id = try #require(try victim.devices().first?.id)
            #expect(try victim.daemon.earshot("reject", id).status == 0)
            #expect(line.answer()?.status == 403)
            #expect(try device.upload("x", "1", "y", [1, 2, 3]) == 403)
            #expect(victim.spool == [])
            #expect(try victim.files().isEmpty)
        }

        @Test("LocalSend: PIN guessing, 3 for an address and 20 in all") func pinsAreGuessedAFewTimes() throws {
            let victim = try DeviceVictim(localSend: "pin = 314159\n")
            let certificate = try HostileCertificate()
            var device = HostileDevice(victim.port, at: "127.24.0.1", as: certificate)
            func guess(_ pin: String) throws -> Int? { try device.post("prepare-upload?pin=\(pin)", Array("{}".utf8)) }
            try Attack(daemon: victim.daemon).run("LocalSend PINs", count: 40) { number in
                device.address = "127.24.0.\(1 + number / 4)"
                // Each address is locked after three wrong PINs, and all are after 20.
                let isLocked = number % 4 == 3 || number - number / 4 >= 20
                let status = try guess(isLocked && number % 2 == 0 ? "314159" : "27182\(number)")
                #expect(status == (isLocked ? 429 : 401), "\(number)")
            }
            device.address = "127.24.0.99"
            #expect(try guess("314159") == 429)
            // A trusted device needs no PIN: its body is read, and has no files.
            try #require(try victim.daemon.call("PUT", "/v1/peers/\(certificate.id)/trust", json: #"{"trust":"trusted"}"#).status == 200)
            #expect(try guess("") == 400)
            #expect(!victim.daemon.log.contains("314159") && !victim.daemon.log.contains("27182"), "no PIN is in the log")
        }

        @Test("LocalSend: a device with a trusted peer's name") func aTakenNameMeansThePeer() throws {
            let victim = try DeviceVictim()
            _ = try LiveSession(with: victim.daemon)
            var device = try HostileDevice(victim.port, as: HostileCertificate())
            device.alias = "friend"
            #expect(try device.register() == 200)
            #expect(try victim.devices().map(\.name) == ["friend"])
            // The name is the peer's; the device has no session to end.
            #expect(try victim.daemon.earshot("trust", "friend").status == 0)
            #expect(try victim.devices().map(\.trust) == ["unknown"])
            #expect(try victim.daemon.decoded(DeviceVictim.Peer.self, at: "/v1/peers/friend").kind == "earshot")
        }

        @Test("LocalSend: the daemon is killed during an upload") func aKilledDaemonListsNothingAsReceived() throws {
            let victim = try DeviceVictim(settings: Self.accepting + "[resources]\nquota = 64M\n")
            let device = try HostileDevice(victim.port, as: HostileCertificate())
            let size = 12 << 20
            let session = try device.session(["1": HostileDevice.file("a", size: size)])
            let line = try device.connect()
            let target = "upload?sessionId=\(session.sessionId)&fileId=1&token=\(session.files["1"] ?? "")"
            line.send(HostileDevice.bytes(target, [UInt8](repeating: 1, count: size / 2), length: size))
            let deadline = ContinuousClock.now + .seconds(10)
            while victim.spool.isEmpty, ContinuousClock.now < deadline { usleep(10_000) }
            #expect(try victim.files().map(\.state) == ["transferring"])
            kill(victim.daemon.pid, SIGKILL)
            #expect(line.ends())
            // The next daemon has the state of the first one.
            let state = "\(victim.daemon.place)/state"
            while victim.daemon.isAlive { usleep(10_000) }
            let next = try DeviceVictim(settings: Self.accepting + "[resources]\nquota = 64M\n") { place in
                try FileManager.default.copyItem(atPath: state, toPath: "\(place)/state")
            }
            #expect(try next.files().map(\.state) == ["failed"])
            #expect(next.spool == [])
            // A stranger may reserve a quarter of the quota, which is less than both files together.
            _ = try HostileDevice(next.port, as: device.certificate).session(["1": HostileDevice.file("b", size: size)])
        }
    }
}
