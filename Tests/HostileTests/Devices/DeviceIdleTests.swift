import Foundation
import Testing

/// Connections that never end, in both directions.
extension HostileTests.Devices {
    /// All are opened at the same time, so that the limits are awaited once: 10 s for those of devices, 13 s for those to devices. A JSON
    /// body has 30 s and an upload 60 s of silence, which are awaited at full scale only (`HandlerTests` advances a clock).
    @Test("LocalSend: connections that never end") func connectionsEndByTheirLimits() throws {
        let victim = try DeviceVictim(settings: "[invitations]\nfrom_unknown = accept\n")
        let certificate = try HostileCertificate()
        func device(_ address: String) -> HostileDevice { HostileDevice(victim.port, at: address, as: certificate) }
        let session = try device("127.70.0.6").session(["1": HostileDevice.file("a", size: 100)])
        let answer = try TrapAnswer(json: HostileDevice.json(device("127.0.0.1").info(["fingerprint": ""])))
        let trap = try Trap([.silence, .silence, TrapAnswer(), TrapAnswer(), answer.slowly, answer.slowly])
        try victim.hold("LocalSend connections that never end") {
            let began = ContinuousClock.now
            // Before TLS, and in it.
            var sockets = try (0..<8).map { _ in try PlainSocket(port: victim.port, from: "127.70.0.1") }
            for socket in sockets[2..<4] { socket.send(Array(HandmadeHandshake.hello.prefix(20))) }
            for socket in sockets[4..<6] { socket.send([22, 3, 1, 0x40, 0]) }
            sockets += try (0..<2).map { _ in try HandmadeHandshake(to: victim.port, from: "127.70.0.2").socket }
            // These send a byte at a time.
            let slowSockets = sockets[6..<8]
            var lines = try (0..<8).map { _ in try device("127.70.0.3").connect() }
            // Before the head, and in it.
            for line in lines[2..<5] { line.send("POST \(HostileDevice.prefix)register HTTP/1.1\r\nHost: x\r\na: ") }
            for line in lines[5..<8] { line.send("GET /") }
            let slowLines = lines[5..<8]
            // After an answer, and after the last one.
            lines += try (0..<6).map { _ in try device("127.70.0.4").connect() }
            let get = "GET \(HostileDevice.prefix)info HTTP/1.1\r\nHost: x\r\n"
            for line in lines[8..<11] { line.send(get + "\r\n") }
            for line in lines[11..<14] { line.send(get + "Connection: close\r\n\r\n") }
            for line in lines[8..<14] { #expect(line.answer()?.status == 200) }
            // In a JSON body, and in an upload.
            let bodies = try (0..<4).map { _ in try device("127.70.0.5").connect() }
            for line in bodies { line.send(HostileDevice.bytes("register", Array("{".utf8), length: 100)) }
            let upload = try device("127.70.0.6").connect()
            let target = "upload?sessionId=\(session.sessionId)&fileId=1&token=\(session.files["1"] ?? "")"
            upload.send(HostileDevice.bytes(target, [1], length: 100))
            // To devices.
            let udp = try (1...6).map { try UDPSocket(from: "127.50.0.\($0)") }
            let announcement = try HostileDevice.json(device("127.0.0.1").info(["port": Int(trap.port), "announce": true]))
            for socket in udp { socket.send(announcement, to: victim.udpPort) }

            #expect(try device("127.70.1.1").register() == 200, "others are served meanwhile")
            var next = HandmadeHandshake.hello[...]
            while ContinuousClock.now - began < .seconds(12), !(sockets.allSatisfy(\.hasEnded) && lines.allSatisfy(\.isClosed)) {
                for socket in slowSockets where !socket.hasEnded { socket.send(Array(next.prefix(1))) }
                for line in slowLines where !line.isClosed { line.send("x") }
                next = next.dropFirst()
                usleep(100_000)
            }
            #expect(sockets.count { !$0.hasEnded } == 0 && lines.count { !$0.isClosed } == 0, "each ends in 10 s")
            while ContinuousClock.now - began < .seconds(15), trap.open > 0 || trap.calls.count < 6 { usleep(5_000) }
            #expect(trap.calls.count == 6 && trap.open == 0)
            for (address, seconds) in trap.seconds {
                let limit = address == "127.50.0.1" || address == "127.50.0.2" ? 13.0 : 5.0
                #expect(seconds > limit - 1 && seconds < limit + 2, "\(address): \(seconds) s")
            }
            #expect(!upload.isClosed && bodies.allSatisfy { !$0.isClosed })
            if Scale.isFull {
                for line in bodies { #expect(line.ends(within: 32)) }
                // Its file has failed, so that the answer is 500.
                #expect(upload.answer(within: 62)?.status == 500)
            } else {
                // Bodies that do not end give way to newcomers.
                let newcomers = try victim.occupy("127.70.0.5", 8)
                #expect(bodies.allSatisfy { $0.ends(within: 1) } && newcomers.allSatisfy { !$0.isClosed })
            }
            upload.close()
        }
        try victim.expectFreePlaces()
    }
}

extension DeviceVictim {
    /// Opens connections from an address, each with an answered request.
    func occupy(_ address: String, _ count: Int) throws -> [DeviceLine] {
        try (0..<count).map { _ in
            let line = try HostileDevice(self.port, at: address, as: nil).connect()
            line.send("GET \(HostileDevice.prefix)info HTTP/1.1\r\nHost: x\r\n\r\n")
            #expect(line.answer()?.status == 200)
            return line
        }
    }

    /// Checks that all 48 places for connections are free, 8 for each address. A newcomer would close a connection without a request.
    func expectFreePlaces() throws {
        let lines = try (1...6).flatMap { try self.occupy("127.71.0.\($0)", 8) }
        #expect(lines.allSatisfy { !$0.isClosed })
    }
}

extension PlainSocket {
    /// Whether the other side has closed the connection. Received bytes are discarded.
    var hasEnded: Bool {
        while let bytes = self.receive(within: 0) { if bytes.isEmpty { return true } }
        return false
    }
}
