import APIDocument
import Foundation
import Testing

extension LAN {
    /// Hostile devices on the network of a daemon that accepts the files of strangers.
    @Suite struct LocalSendAttacks {
        /// A hostile sender and the last status that it gets.
        struct Attack: Sendable, CustomTestStringConvertible {
            let options: [String]
            let request: String
            let statuses: [Int]

            var testDescription: String { self.options.joined(separator: " ") }
        }

        @Test(arguments: [
            Attack(options: ["--size", "5"], request: "upload", statuses: [413]),
            Attack(options: ["--size", "5", "--with-length"], request: "upload", statuses: [413]),
            Attack(options: ["--size", "5000000"], request: "upload", statuses: [500]),
            Attack(options: ["--size", "9000000000000000000"], request: "prepare-upload", statuses: [507]),
            Attack(options: ["--sha256", String(repeating: "0", count: 64)], request: "upload", statuses: [422, 422, 422]),
            Attack(options: ["--token", "wrong"], request: "upload", statuses: [403]),
            Attack(options: ["--token", "none"], request: "upload", statuses: [400]),
            Attack(options: ["--other-certificate"], request: "upload", statuses: [403]),
            Attack(options: ["--upload-from", "10.77.0.62"], request: "upload", statuses: [403]),
            Attack(options: ["--name", "../../escaped"], request: "prepare-upload", statuses: [400]),
            Attack(options: ["--name", "/etc/escaped"], request: "prepare-upload", statuses: [400]),
            Attack(options: ["--many", "5001"], request: "prepare-upload", statuses: [413]),
        ])
        func senders(_ attack: Attack) async throws {
            try await Laboratory.run { laboratory in
                let bob = try await laboratory.bob(["EARSHOT_INVITATIONS_FROM_UNKNOWN": "accept"])
                try await laboratory.ownHost("mallory", "10.77.0.61")
                try await laboratory.lab("host", "exec", "mallory", "--", "ip", "addr", "add", "10.77.0.62/24", "dev", "eth0")
                let song = try await laboratory.file("song.flac", mebibytes: 1)
                let mallory = try await laboratory.device(
                    "mallory", on: "mallory", ["send", Laboratory.bobsAddress, "53317", song] + attack.options)
                let end = await mallory.end()
                #expect(end.status == 3 && end.statuses(of: attack.request) == attack.statuses, "\(end)")
                #expect(try await !bob.fileStates().values.contains("completed"))
                #expect(bob.isRunning)
            }
        }

        @Test func aFileIsUploadedOnce() async throws {
            try await Laboratory.run { laboratory in
                let bob = try await laboratory.bob(["EARSHOT_INVITATIONS_FROM_UNKNOWN": "accept"])
                let phone = try await laboratory.send([try laboratory.photos(), "--repeat"])
                #expect(await phone.end().statuses(of: "upload").filter { $0 == 200 }.count == 2)
                try await bob.awaitFiles(["one.txt": "completed", "empty": "completed"])
            }
        }

        /// A fingerprint in a body or a datagram lists no device, and changes none that is listed.
        @Test func claimedFingerprints() async throws {
            try await Laboratory.run { laboratory in
                let bob = try await laboratory.bob()
                let phone = try await laboratory.device("phone", on: "alice", ["serve", "\(laboratory.place)/in", "--announce"])
                let id = try await phone.id()
                let before = try await bob.awaitDevice(id)
                try await bob.expect(0, "trust", id)
                let fingerprint = try #require(before["fingerprint"]?.string)

                try await laboratory.ownHost("mallory", "10.77.0.61")
                let arguments = ["register", Laboratory.bobsAddress, "53317", "--claim", fingerprint]
                let registered = await (try await laboratory.device("mallory", on: "mallory", arguments)).end()
                #expect(registered.statuses(of: "register") == [200], "\(registered)")
                let forged = await (try await laboratory.device("mallory", on: "mallory", ["forge", "3", "--claim", fingerprint])).end()
                #expect(forged.status == 0, "\(forged)")
                // A device that is found later shows that the earlier datagrams were handled.
                let tablet = try await laboratory.device("tablet", on: "carol", ["serve", "\(laboratory.place)/in2", "--announce"])
                try await bob.awaitDevice(try await tablet.id())
                let rows = try await bob.json("peers")["peers"]?.elements ?? []
                #expect(rows.count == 2)
                let after = try #require(rows.first { $0["id"]?.string == id })
                #expect(after["name"] == before["name"])
                // The phone's own announcements may move it between IPv4 and IPv6.
                try await bob.expect(0, "send", id, "still there")
                try await phone.event("offered") { $0["text"]?.string == "still there" }
            }
        }

        /// A device with an address outside of bob's networks, to which bob has a route, is neither listed nor called.
        @Test func anotherNetwork() async throws {
            try await Laboratory.run { laboratory in
                try await laboratory.ownHost("victim", "10.77.0.60")
                try await laboratory.ownHost("mallory", "10.77.0.61")
                let bob = try await laboratory.daemon("bob", on: "victim", environment: ["EARSHOT_LOCALSEND_ENABLED": "yes"])
                func ip(_ host: String, _ arguments: String...) async throws {
                    try await laboratory.lab(["host", "exec", host, "--", "ip"] + arguments)
                }
                try await ip("mallory", "addr", "add", "198.51.100.7/32", "dev", "eth0")
                try await ip("mallory", "route", "add", "10.77.0.60/32", "dev", "eth0", "src", "198.51.100.7")
                try await ip("victim", "route", "add", "198.51.100.7/32", "via", "10.77.0.61")
                let server = try await laboratory.device("server", on: "mallory", ["serve", "\(laboratory.place)/in", "--port", "53318"])
                try await server.event("listening")
                func mallory(_ arguments: [String]) async throws -> LocalSendDevice.End {
                    await (try await laboratory.device("mallory", on: "mallory", arguments)).end()
                }
                let registered = try await mallory(["register", "10.77.0.60", "53317"])
                #expect(registered.status == 3, "\(registered)")
                let forge = ["forge", "3", "--to", "10.77.0.60", "--port", "53318", "--claim", String(repeating: "0", count: 64)]
                let far = try await mallory(forge + ["--sources", "198.51.100.7", "1"])
                #expect(far.status == 0, "\(far)")
                // From its address on the link, the same device is called and listed. The datagrams before have been handled by then.
                let near = try await mallory(forge)
                #expect(near.status == 0, "\(near)")
                try await server.event("registered")
                try await bob.awaitDevice(try await server.id())
                #expect(server.events("registered").count == 1 && server.events("handshake-failed").isEmpty)
                try await ip("mallory", "route", "del", "10.77.0.60/32")
                #expect(try await mallory(["register", "10.77.0.60", "53317"]).status == 0)
                #expect(try await bob.json("peers")["peers"]?.elements.count == 2)
            }
        }

        @Test func tenThousandAnnouncements() async throws {
            try await Laboratory.run { laboratory in
                let bob = try await laboratory.bob()
                try await laboratory.ownHost("mallory", "10.77.0.61")
                let arguments = ["forge", "10000", "--sources", "10.77.0.70", "100"]
                let forged = await (try await laboratory.device("mallory", on: "mallory", arguments)).end()
                #expect(forged.status == 0, "\(forged)")
                #expect(try await bob.json("peers")["peers"]?.elements == [], "nothing is listed without its certificate")
                // Friendly devices are still found; bob's answers are limited to 30 a minute.
                let phone = try await laboratory.device("phone", on: "alice", ["register", Laboratory.bobsAddress, "53317"])
                #expect(await phone.end().status == 0)
                try await eventually("bob lists the phone") { try await bob.json("peers")["peers"]?.elements.count == 1 }
                #expect(bob.isRunning)
            }
        }
    }
}
