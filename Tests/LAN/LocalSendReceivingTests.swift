import APIDocument
import Foundation
import Testing

extension LAN {
    /// A phone with LocalSend sends to a daemon.
    @Suite struct LocalSendReceiving {
        /// Arguments of the sender after its paths, and the daemon's settings.
        struct Way: Sendable, CustomTestStringConvertible {
            let options: [String]
            var settings: [String: String] = [:]

            var testDescription: String { self.options.joined(separator: " ") }
        }

        @Test(arguments: [
            Way(options: []), Way(options: ["--checksums", "--parallel", "2"]), Way(options: ["--with-length"]),
            Way(options: ["--hide"]), Way(options: ["--claim", "lower"]),
            Way(options: ["--pin", "123456"], settings: ["EARSHOT_LOCALSEND_PIN": "123456"]),
        ])
        func aPersonAccepts(_ way: Way) async throws {
            try await Laboratory.run { laboratory in
                let bob = try await laboratory.bob(way.settings)
                let (photos, song) = (try laboratory.photos(), try await laboratory.file("song.flac", mebibytes: 5))
                let phone = try await laboratory.send([song, photos] + way.options)
                let offer = try await bob.awaitOffer()
                let names = offer["offer"]?.elements.compactMap { $0["name"]?.string }
                #expect(Set(names ?? []) == ["song.flac", "photos/one.txt", "photos/inner/empty"])
                #expect(offer["peer_name"]?.string == "phone")
                #expect(phone.running.isRunning, "the phone waits for a person")
                try await bob.expect(0, "accept", try #require(offer["id"]?.string))
                let end = await phone.end()
                #expect(end.status == 0, "\(end)")
                try await bob.awaitFiles(["song.flac": "completed", "one.txt": "completed", "empty": "completed"])
                #expect(try await bob.json("sessions")["sessions"]?.elements == [], "an offer never becomes a session")

                try await bob.expect(0, "file", "get")
                #expect(try await LAN.equal(song, "\(bob.place)/song.flac"))
                let difference = try await Running(["/usr/bin/diff", "-r", photos, "\(bob.place)/photos"]).outcome()
                #expect(difference.status == 0, "\(difference)")
            }
        }

        @Test(arguments: [Way(options: []), Way(options: ["--hide"])]) func aTextIsAMessage(_ way: Way) async throws {
            try await Laboratory.run { laboratory in
                let bob = try await laboratory.bob()
                let phone = try await laboratory.send(["--text", "grüezi mitenand"] + way.options)
                let offer = try await bob.awaitOffer()
                try await bob.expect(0, "accept", try #require(offer["id"]?.string))
                let end = await phone.end()
                #expect(end.status == 0 && end.statuses(of: "prepare-upload") == [204], "\(end)")
                let outcome = try await bob.expect(0, "receive", "--json", "--timeout", "10")
                #expect(try JSONValue(parsing: outcome.output.utf8)["body"]?.string == "grüezi mitenand")
                #expect(try await bob.fileStates() == [:])
            }
        }

        @Test func acceptedAlways() async throws {
            try await Laboratory.run { laboratory in
                let bob = try await laboratory.bob()
                let photos = try laboratory.photos()
                let first = try await laboratory.send([photos])
                let offer = try await bob.awaitOffer()
                try await bob.expect(0, "accept", "--always", try #require(offer["id"]?.string))
                let id = try #require(offer["peer_id"]?.string)
                #expect(await first.end().status == 0)
                #expect(try await bob.awaitDevice(id)["trust"]?.string == "trusted")

                let second = await (try await laboratory.send(["\(photos)/one.txt"])).end()
                #expect(second.status == 0, "a trusted device is not asked about: \(second)")
                // Another certificate under the same name is another device.
                let other = try await laboratory.device(
                    "phone2", on: "alice", global: ["--alias", "phone"],
                    [
                        "send", Laboratory.bobsAddress, "53317", "--text", "me again",
                    ])
                let asked = try await bob.awaitOffer()
                #expect(asked["peer_id"]?.string != id)
                try await bob.expect(0, "reject", try #require(asked["id"]?.string))
                #expect(await other.end().statuses(of: "prepare-upload") == [403])
            }
        }

        @Test func rejectedAndBlocked() async throws {
            try await Laboratory.run { laboratory in
                let bob = try await laboratory.bob()
                for decision in ["reject", "block"] {
                    let phone = try await laboratory.send(["--text", "hello"])
                    let offer = try await bob.awaitOffer()
                    try await bob.expect(0, decision, try #require(offer[decision == "block" ? "peer_id" : "id"]?.string))
                    let end = await phone.end()
                    #expect(end.status == 3 && end.statuses(of: "prepare-upload") == [403], "\(end)")
                }
                let blocked = await (try await laboratory.send(["--text", "hello"])).end()
                #expect(blocked.status == 3 && blocked.statuses(of: "prepare-upload") == [403], "\(blocked)")
                try await bob.awaitNoOffer()
            }
        }

        /// A sender without a certificate has no id, and therefore nothing that could be kept about it.
        @Test func anUnknownSenderIsNeitherTrustedNorBlocked() async throws {
            try await Laboratory.run { laboratory in
                let bob = try await laboratory.bob()
                let phone = try await laboratory.send(["--hide", "--text", "hello"])
                let offer = try await bob.awaitOffer()
                let id = try #require(offer["id"]?.string)
                #expect(offer["peer_id"]?.string == nil)
                let always = try await bob.earshot("accept", "--always", id)
                #expect(always.status != 0, "\(always)")
                #expect(phone.running.isRunning, "a refused decision is none")
                try await bob.expect(0, "reject", id)
                #expect(await phone.end().statuses(of: "prepare-upload") == [403])
                #expect(try await bob.json("peers")["peers"]?.elements == [])
            }
        }

        @Test func thePINIsAskedAndGuessesEnd() async throws {
            try await Laboratory.run { laboratory in
                let bob = try await laboratory.bob(["EARSHOT_LOCALSEND_PIN": "123456"])
                for (pin, status) in [(nil, 401), ("111111", 401), ("222222", 401), ("333333", 401), ("123456", 429)] {
                    let end = await (try await laboratory.send(["--text", "hello"] + (pin.map { ["--pin", $0] } ?? []))).end()
                    #expect(end.status == 3 && end.statuses(of: "prepare-upload") == [status], "\(end)")
                }
                try await bob.awaitNoOffer()
            }
        }

        /// The sender hangs up, cancels without a session as older versions do, or nobody decides.
        @Test(arguments: [
            Way(options: ["--hang-up", "2"]), Way(options: ["--cancel-waiting", "2"]),
            Way(options: [], settings: ["EARSHOT_LOCALSEND_TIMEOUT": "5s"]),
        ])
        func withdrawn(_ way: Way) async throws {
            try await Laboratory.run { laboratory in
                let bob = try await laboratory.bob(way.settings)
                let phone = try await laboratory.send(["--text", "hello"] + way.options)
                try await bob.awaitOffer()
                try await bob.awaitNoOffer()
                #expect(await phone.end().status == 3)
                // The place is free again.
                let second = try await laboratory.send(["--text", "hello"])
                let offer = try await bob.awaitOffer()
                try await bob.expect(0, "accept", try #require(offer["id"]?.string))
                #expect(await second.end().status == 0)
            }
        }

        @Test(arguments: [["--cancel-after", "1000000"], ["--die-after", "1000000"], []])
        func endedInTheMiddle(_ options: [String]) async throws {
            try await Laboratory.run { laboratory in
                let bob = try await laboratory.bob(["EARSHOT_INVITATIONS_FROM_UNKNOWN": "accept"])
                let song = try await laboratory.file("song.flac", mebibytes: 20)
                let phone = try await laboratory.send([song, "--rate", "4000000"] + options)
                if options.isEmpty {
                    try await eventually("the file arrives") { try await bob.fileStates()["song.flac"] == "transferring" }
                    let row = try await bob.json("file", "list")["resources"]?.elements.first
                    try await bob.expect(0, "file", "cancel", try #require(row?["id"]?.string))
                    try await phone.event("cancelled") { $0["by"]?.string == "receiver" }
                }
                let end = await phone.end()
                #expect(end.status == 3, "\(end)")
                try await bob.awaitFiles(["song.flac": options.isEmpty ? "cancelled" : "failed"])
                let again = await (try await laboratory.send(["\(try laboratory.photos())/one.txt"])).end()
                #expect(again.status == 0, "\(again)")
            }
        }
    }
}
