import Foundation
import Testing

/// Offers in numbers, which no user answers.
extension HostileTests.Devices {
    @Test("LocalSend: 1,000 offers from one address, and from 1,000") func offersThatNobodyAnswers() throws {
        let victim = try DeviceVictim()
        let trusted = try HostileCertificate()
        try #require(try victim.daemon.call("PUT", "/v1/peers/\(trusted.id)/trust", json: #"{"trust":"trusted"}"#).status == 200)
        let count = Scale.of(1_000)
        try victim.hold("LocalSend offers that nobody answers") {
            var lines: [DeviceLine] = []
            func offer(_ number: Int, at address: String) throws -> DeviceLine {
                let device = try HostileDevice(victim.port, at: address, as: number % 10 == 9 ? nil : HostileCertificate())
                let line = try device.connect()
                line.send(HostileDevice.bytes("prepare-upload", try device.offerBody(["1": HostileDevice.file("a", size: 3)])))
                lines.append(line)
                return line
            }
            for number in 0..<count {
                let line = try offer(number, at: "127.80.0.1")
                if number < 4 {
                    try victim.awaitPending(number + 1)
                } else {
                    try #require(line.answer(within: 10)?.status == 409, "\(number)")
                }
            }
            #expect(try victim.pending() == 4, "one address has four places")
            for number in 0..<count {
                let line = try offer(number, at: "127.81.\(number / 250).\(1 + number % 250)")
                switch number {
                case 0..<28: try victim.awaitPending(number + 5)
                // The address with most places loses all but one of them.
                case 28..<31: try #require(lines[number - 28].answer(within: 10)?.status == 409)
                default: try #require(line.answer(within: 10)?.status == 409, "\(number)")
                }
            }
            #expect(try victim.pending() == 32 && !lines[3].isClosed)

            // Devices and peers that a user trusts, from an address of the flood and from other ones.
            for address in ["127.80.0.1", "127.82.0.1"] {
                _ = try HostileDevice(victim.port, at: address, as: trusted).session(["1": HostileDevice.file(address, size: 3)])
            }
            _ = try LiveSession(with: victim.daemon, from: "127.82.0.2")
            // The senders hang up.
            lines = []
            try victim.awaitPending(0)
            _ = try offer(0, at: "127.82.0.3")
            try victim.awaitPending(1)
            lines = []
            try victim.awaitPending(0)
        }
        try victim.expectFreePlaces()
    }

    /// With `paired_only`, strangers are refused after a time in which a user could have answered. They have connections as long as that.
    @Test("LocalSend: strangers who are refused later") func hiddenOffersKeepNoPlaces() throws {
        let victim = try DeviceVictim(settings: "[invitations]\npaired_only = yes\n")
        let trusted = try HostileCertificate()
        try #require(try victim.daemon.call("PUT", "/v1/peers/\(trusted.id)/trust", json: #"{"trust":"trusted"}"#).status == 200)
        let strangers = try (0..<48).map { HostileDevice(victim.port, at: "127.83.0.\(1 + $0 / 8)", as: try HostileCertificate()) }
        try victim.hold("LocalSend offers that are hidden") {
            let lines = try strangers.map { device in
                let line = try device.connect()
                line.send("GET \(HostileDevice.prefix)info HTTP/1.1\r\nHost: x\r\n\r\n")
                #expect(line.answer()?.status == 200)
                return line
            }
            let offer = HostileDevice.bytes("prepare-upload", try strangers[0].offerBody(["1": HostileDevice.file("a", size: 3)]))
            for line in lines { line.send(offer) }
            #expect(try victim.pending() == 0)
            for address in ["127.83.0.1", "127.84.0.1"] {
                _ = try HostileDevice(victim.port, at: address, as: trusted).session(["1": HostileDevice.file(address, size: 3)])
            }
            // Their connections are unused once they are answered, and give way.
            #expect(lines.allSatisfy { [403, nil].contains($0.answer()?.status) })
        }
        #expect(try victim.devices().contains { $0.trust == "trusted" })
    }
}

extension DeviceVictim {
    /// Waits until so many invitations are pending.
    func awaitPending(_ count: Int) throws {
        let deadline = ContinuousClock.now + .seconds(10)
        while try self.pending() != count, ContinuousClock.now < deadline { usleep(2_000) }
        try #require(try self.pending() == count)
    }
}
