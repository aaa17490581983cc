import EarshotWire
import Foundation
import NIOCore
import Testing

/// Announcements that make the daemon call devices, and devices whose answers are hostile.
extension HostileTests.Devices {
    @Test("LocalSend: 10,000 forged announcements") func forgedAnnouncements() throws {
        let victim = try DeviceVictim()
        let trap = try Trap()
        let sockets = try (0..<200).map { try UDPSocket(from: "127.40.\($0 / 100).\(1 + $0 % 100)") }
        let certificate = try HostileCertificate()
        let device = HostileDevice(victim.port, as: certificate)
        #expect(try device.register() == 200)
        let count = Scale.of(10_000)
        let claimed = [certificate.fingerprint, certificate.fingerprint.lowercased(), "", "x"]
        try Attack(daemon: victim.daemon).run("LocalSend announcements", count: count) { number in
            let fingerprint = number % 5 == 0 ? claimed[number / 5 % 4] : String(format: "%064X", number)
            let changes: [String: Any] = [
                "fingerprint": fingerprint, "announce": number % 7 != 0, "port": number % 10 == 0 ? 22 : Int(trap.port),
                "alias": "forged-\(number)", "protocol": number % 11 == 0 ? "http" : "https",
            ]
            var bytes = try HostileDevice.json(device.info(changes))
            if number % 13 == 0 { bytes = Array(bytes.prefix(number % bytes.count)) }
            if number % 17 == 0 { bytes += [UInt8](repeating: 0x20, count: 2_048) }
            sockets[number % sockets.count].send(bytes, to: victim.udpPort)
            // As fast as they are decoded, so that those of every kind are.
            if number % 50 == 49 { usleep(100_000) }
        }
        let calls = trap.calls
        #expect((1...30).contains(calls.count), "\(calls.count) calls")
        #expect(Set(calls).count == calls.count, "one for each address in 10 s")
        #expect(try victim.devices().map(\.name) == ["phone"], "no announcement lists, renames or removes a device")
    }

    /// A device that is listed under its own certificate, and servers that answer the registration as no device does. Each ends at once, or
    /// within the 5 s for an answer.
    @Test("LocalSend: hostile answers to a registration") func hostileAnswers() throws {
        let victim = try DeviceVictim()
        let certificate = try HostileCertificate()
        var device = HostileDevice(victim.port, as: certificate)
        device.alias = "victim's friend"
        #expect(try device.register() == 200)
        let description = device.info(["alias": "hostile", "fingerprint": ""])
        func body(_ changes: [String: Any] = [:]) throws -> TrapAnswer {
            try TrapAnswer(json: HostileDevice.json(description.merging(changes) { $1 }))
        }
        let head = "HTTP/1.1 200 OK\r\n"
        let chunked = head + "Transfer-Encoding: chunked\r\n\r\n"
        let honest = try body(["alias": "honest"])
        let crowd = [HostileCertificate](repeating: certificate, count: 250)
        let moved = { (port: UInt16) in "HTTP/1.1 307 Moved\r\nLocation: https://127.50.0.200:\(port)/\r\nContent-Length: 0\r\n\r\n" }
        let answers: [(answer: TrapAnswer, name: String)] = [
            (honest, "honest"), (try body(["fingerprint": certificate.fingerprint]), "another's fingerprint"),
            (try body(["fingerprint": certificate.fingerprint.lowercased()]), "another's fingerprint in lower case"),
            (try TrapAnswer(moved(victim.port)), "a redirect to the daemon"),
            (try TrapAnswer(head + "Content-Length: 1000000000000\r\n\r\n{\"alias\":\"", endless: "x"), "an endless body"),
            (try TrapAnswer(head + "\r\n[", endless: "[{"), "an endless body without a length"),
            (try TrapAnswer(chunked, endless: "1\r\n \r\n"), "endless chunks"),
            (try TrapAnswer(chunked + "1", endless: "0"), "an endless chunk size"),
            (try TrapAnswer(chunked + "1;", endless: "x"), "an endless extension of a chunk"),
            (try TrapAnswer(chunked + "0\r\n", endless: "a: b\r\n"), "endless trailers"),
            (try TrapAnswer(chunked + "0\r\na:\r\nb:\r\n\r\n"), "empty trailers"),
            (try TrapAnswer(chunked + "-1\r\nx\r\n"), "a negative chunk size"),
            (try TrapAnswer(head + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), "two lengths"),
            (try TrapAnswer(head + "a: ", endless: "x"), "an endless field"), (try TrapAnswer(head, endless: "a: b\r\n"), "endless fields"),
            (try TrapAnswer("HTTP/1.1 200 ", endless: "x"), "an endless reason"), (try TrapAnswer("", endless: "\r\n"), "endless lines"),
            (try TrapAnswer("", endless: "HTTP/1.1 100 Continue\r\n\r\n"), "endless interim answers"),
            (try TrapAnswer("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", endless: "x"), "another protocol"),
            (try TrapAnswer(json: Array("[]".utf8)), "a list"), (try body(["alias": 7]), "a number as a name"),
            (try TrapAnswer(json: [UInt8](repeating: UInt8(ascii: "["), count: 60_000)), "a deep list"),
            (try TrapAnswer(json: [0xFF, 0xFE, 0, 0x7B]), "no text"), (try TrapAnswer("SSH-2.0-x\r\n"), "another service"),
            (try TrapAnswer("").thenClosed, "closed at once"), (try TrapAnswer(head + "Content-Length: 9\r\n\r\n{").thenClosed, "cut off"),
            (honest.with { $0.certificate = certificate.followed(by: crowd) }, "251 certificates"),
        ]
        let trap = try Trap(answers.map(\.answer))
        try victim.hold("LocalSend answers") { try victim.lure(to: trap, count: answers.count, within: 15) }
        let calls = trap.calls
        #expect(Set(calls) == Set(answers.indices.map { "127.50.0.\($0 + 1)" }) && calls.count == answers.count, "each is called once")
        for (number, answer) in answers.enumerated() {
            let seconds = trap.seconds["127.50.0.\(number + 1)"] ?? .infinity
            #expect(seconds < 7, "\(answer.name): \(seconds) s")
        }
        let known = Set([certificate.id, honest.certificate?.id].compactMap { $0?.description })
        #expect(Set(try victim.devices().map(\.id)) == known, "nothing is listed without its certificate")
        #expect(Set(try victim.devices().map(\.name)) == ["victim's friend", "honest"])
    }

    /// An answer takes a few hundred bytes. Nobody has decided about these devices, and 30 of them may answer at the same time.
    @Test("LocalSend: 30 answers of 4 MiB at the same time") func largeAnswers() throws {
        let victim = try DeviceVictim()
        let size = 4 << 20
        var large = try TrapAnswer("HTTP/1.1 200 OK\r\nContent-Length: \(size)\r\n\r\n")
        large.start.writeRepeatingByte(0x20, count: size - 1)
        let trap = try Trap([TrapAnswer](repeating: large, count: 40))
        try victim.hold("LocalSend large answers") { try victim.lure(to: trap, count: 30, of: 40, within: 20) }
        #expect(trap.calls.count == 30, "30 a minute")
    }
}

extension DeviceVictim {
    /// Announces devices at the addresses 127.50.0.1 and up, so that the daemon calls them, and waits until it has called `count` of them and
    /// all connections have ended.
    func lure(to trap: Trap, count: Int, of all: Int? = nil, within seconds: Double) throws {
        let sockets = try (1...(all ?? count)).map { try UDPSocket(from: "127.50.0.\($0)") }
        let device = HostileDevice(self.port, as: nil)
        for round in 0..<2 {
            for (number, socket) in sockets.enumerated() {
                let claimed = String(format: "%064X", number)
                let changes: [String: Any] = ["fingerprint": claimed, "port": Int(trap.port), "announce": true, "alias": "lure-\(round)"]
                socket.send(try HostileDevice.json(device.info(changes)), to: self.udpPort)
            }
        }
        let deadline = ContinuousClock.now + .seconds(seconds)
        while trap.calls.count < count || trap.open > 0, ContinuousClock.now < deadline { usleep(5_000) }
        #expect(trap.calls.count >= count && trap.open == 0, "\(trap.calls.count) called, \(trap.open) open")
    }
}
