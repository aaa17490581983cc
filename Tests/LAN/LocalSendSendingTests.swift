import APIDocument
import Foundation
import Testing

extension LAN {
    /// A daemon finds phones with LocalSend, and sends to them.
    @Suite struct LocalSendSending {
        /// Has bob list a phone on alice's host that announces itself.
        private static func phone(
            _ laboratory: Laboratory, _ bob: Daemon, _ options: [String] = []
        ) async throws -> (phone: LocalSendDevice, id: String) {
            let phone = try await laboratory.device(
                "phone", on: "alice", ["serve", "\(laboratory.place)/in", "--port", "53317", "--announce"] + options)
            let id = try await phone.id()
            try await bob.awaitDevice(id)
            return (phone, id)
        }

        @Test func devicesAreListed() async throws {
            try await Laboratory.run { laboratory in
                let listener = try await laboratory.device("tablet", on: "carol", ["discover"])
                try await listener.event("listening")
                let bob = try await laboratory.bob()
                // At its start, bob announces itself, and the tablet registers; the phone announces itself, and bob registers.
                let heard = try await listener.event("seen") { $0["alias"]?.string == "bob" }
                #expect(heard["protocol"]?.string == "https" && heard["port"]?.number == 53317)
                try await listener.event("confirmed") { $0["alias"]?.string == "bob" }
                try await bob.awaitDevice(try await listener.id())

                let (phone, id) = try await Self.phone(laboratory, bob)
                let row = try await bob.awaitDevice(id)
                #expect(row["kind"]?.string == "localsend" && row["name"]?.string == "phone" && row["trust"]?.string == "unknown")
                #expect(row["sources"]?.elements.contains(.string("localsend")) == true)
                let registered = try await phone.event("registered") { $0["alias"]?.string == "bob" }
                #expect(registered["fingerprint"] == registered["certificate"], "bob shows its certificate")
                #expect(registered["clean"] == .bool(true))
                #expect(phone.events("violation") == [] && listener.events("violation") == [])
            }
        }

        @Test func filesAndTexts() async throws {
            try await Laboratory.run { laboratory in
                let bob = try await laboratory.bob()
                let (phone, id) = try await Self.phone(laboratory, bob)
                let (photos, song) = (try laboratory.photos(), try await laboratory.file("song.flac", mebibytes: 5))
                try await bob.expect(0, "file", "send", id, song, photos)
                #expect(try await LAN.equal(song, "\(laboratory.place)/in/song.flac"))
                let difference = try await Running(["/usr/bin/diff", "-r", photos, "\(laboratory.place)/in/photos"]).outcome()
                #expect(difference.status == 0, "\(difference)")
                try await bob.expect(0, "send", id, "grüezi")
                try await phone.event("offered") { $0["text"]?.string == "grüezi" }
                #expect(phone.events("violation") == [], "\(phone.events("violation"))")
            }
        }

        /// Anyone can claim a name: it counts once the device is trusted.
        @Test func aStrangerIsNamedByItsID() async throws {
            try await Laboratory.run { laboratory in
                let bob = try await laboratory.bob()
                let (_, id) = try await Self.phone(laboratory, bob)
                let refused = try await bob.expect(77, "send", "phone", "hello")
                #expect(refused.errors.contains(id), "\(refused)")
                try await bob.expect(0, "trust", id)
                try await bob.expect(0, "send", "phone", "hello")
            }
        }

        /// The device's options, and the exit status of `earshot file send`.
        struct Answer: Sendable, CustomTestStringConvertible {
            let options: [String]
            let arguments: [String]
            let status: Int32

            var testDescription: String { (self.options + self.arguments).joined(separator: " ") }
        }

        @Test(arguments: [
            Answer(options: ["--answer", "reject"], arguments: [], status: 77),
            Answer(options: ["--pin", "123456"], arguments: [], status: 77),
            Answer(options: ["--pin", "123456"], arguments: ["--pin", "123456"], status: 0),
            Answer(options: ["--wait", "3"], arguments: [], status: 0),
            Answer(options: ["--asking", "optional"], arguments: [], status: 0),
            Answer(options: ["--asking", "none"], arguments: [], status: 0),
            Answer(options: ["--bad-checksums", "1"], arguments: [], status: 0),
            Answer(options: ["--bad-checksums", "3"], arguments: [], status: 76),
            Answer(options: ["--rate", "20000000"], arguments: [], status: 0),
            Answer(options: ["--space", "10"], arguments: [], status: 74),
            Answer(options: ["--other-after", "4"], arguments: [], status: 76),
            Answer(options: ["--cancel-after", "1000000", "--rate", "4000000"], arguments: [], status: 1),
            Answer(options: ["--cut-after", "1000000"], arguments: [], status: 75),
        ])
        func answers(_ answer: Answer) async throws {
            try await Laboratory.run { laboratory in
                let bob = try await laboratory.bob()
                let (phone, id) = try await Self.phone(laboratory, bob, answer.options)
                if answer.options.first == "--other-after" {
                    // A device that is not trusted leaves the list when another certificate answers at its address.
                    try await bob.expect(0, "trust", id)
                    try await phone.event("other-certificate")
                }
                let song = try await laboratory.file("song.flac", mebibytes: 8)
                let outcome = try await bob.earshot(["file", "send", id, song] + answer.arguments)
                #expect(outcome.status == answer.status, "\(outcome)")
                #expect(phone.events("uploaded").count == (answer.status == 0 ? 1 : 0))
                #expect(phone.events("violation") == [], "\(phone.events("violation"))")
            }
        }

        /// A busy device is asked again until the command times out.
        @Test func aBusyDeviceIsAskedAgain() async throws {
            try await Laboratory.run { laboratory in
                let bob = try await laboratory.bob()
                let (phone, id) = try await Self.phone(laboratory, bob, ["--answer", "busy"])
                let outcome = try await bob.earshot("send", id, "hello", "--timeout", "8")
                #expect(outcome.status == 79, "nothing left this machine: \(outcome)")
                #expect(phone.events("answered").count > 1)
            }
        }

        @Test func queuedUntilTheDeviceIsSeen() async throws {
            try await Laboratory.run { laboratory in
                let bob = try await laboratory.bob()
                let (phone, id) = try await Self.phone(laboratory, bob)
                try await bob.expect(0, "trust", id)
                phone.running.signal(SIGTERM)
                #expect(await phone.end().status == 0)
                try await bob.expect(0, "send", "phone", "later", "--queue")
                let (again, _) = try await Self.phone(laboratory, bob)
                try await again.event("offered", within: .seconds(90)) { $0["text"]?.string == "later" }
            }
        }
    }
}
