import APIDocument
import Foundation
import Testing

/// The directory of the programs that `Tests/outside` has fetched; `nil` in a run of the tests alone.
private let programs = ProcessInfo.processInfo.environment["EARSHOT_LOCALSEND_BIN"]

extension LAN {
    /// A daemon and programs by other authors that speak LocalSend.
    @Suite(.serialized, .enabled(if: programs != nil, "Tests/outside runs it")) struct LocalSendPrograms {
        private static let host = "dora"

        /// Makes the host of the programs. They join the group of multicast by the route of its address.
        private static func makeHost(_ laboratory: Laboratory) async throws {
            try await laboratory.ownHost(self.host, "10.77.0.63")
            try await laboratory.lab("host", "exec", self.host, "--", "ip", "route", "add", "default", "dev", "eth0")
            try FileManager.default.createDirectory(atPath: "\(laboratory.place)/received", withIntermediateDirectories: true)
        }

        /// Starts a program, with a home of its own.
        private static func start(_ laboratory: Laboratory, _ words: [String]) throws -> Running {
            let command = ["/usr/bin/env", "-u", "REQUESTS_CA_BUNDLE", "-u", "CURL_CA_BUNDLE", "HOME=\(laboratory.place)"]
            return try laboratory.start(on: self.host, command + ["\(try #require(programs))/\(words[0])"] + words.dropFirst())
        }

        /// Waits for a device by a part of its name, and returns its id.
        private static func device(_ bob: Daemon, _ name: String) async throws -> String {
            var id: String?
            try await eventually(within: .seconds(60), "bob lists \(name)") {
                let rows = try await bob.json("peers")["peers"]?.elements ?? []
                id = rows.first { $0["name"]?.string?.contains(name) == true }?["id"]?.string
                return id != nil
            }
            return try #require(id)
        }

        @Test func localsendd() async throws {
            try await Laboratory.run { laboratory in
                let bob = try await laboratory.bob()
                try await Self.makeHost(laboratory)
                let (socket, song) = ("\(laboratory.place)/dora.sock", try await laboratory.file("song.flac", mebibytes: 20))
                let received = "\(laboratory.place)/received"
                let words = ["--alias", "dora", "--download-dir", received, "--unattended", "--socket", socket]
                _ = try Self.start(laboratory, ["localsendd"] + words)
                let id = try await Self.device(bob, "dora")
                try await bob.expect(0, "file", "send", id, song)
                #expect(try await LAN.equal(song, "\(received)/song.flac"))
                // The program accepts a text as a file.
                try await bob.expect(0, "send", id, "grüezi")
                try await eventually("the text arrives") {
                    let names = try FileManager.default.contentsOfDirectory(atPath: received)
                    return names.contains { FileManager.default.contents(atPath: "\(received)/\($0)") == Data("grüezi".utf8) }
                }

                let sending = ["localsendctl", "--socket", socket, "send", "--to", Laboratory.bobsAddress, "--wait", "--quiet", song]
                let sender = try Self.start(laboratory, sending)
                let offer = try await bob.awaitOffer()
                #expect(offer["peer_id"]?.string == id, "the certificate of the sender is that of the receiver")
                try await bob.expect(0, "accept", try #require(offer["id"]?.string))
                let outcome = await sender.outcome()
                #expect(outcome.status == 0, "\(outcome)")
                try await bob.awaitFiles(["song.flac": "completed"])
                try await bob.expect(0, "file", "get", "song.flac")
                #expect(try await LAN.equal(song, "\(bob.place)/song.flac"))
            }
        }

        @Test func localsendCLI() async throws {
            try await Laboratory.run { laboratory in
                let bob = try await laboratory.bob()
                try await Self.makeHost(laboratory)
                let (song, received) = (try await laboratory.file("song.flac", mebibytes: 20), "\(laboratory.place)/received")
                let receiver = try Self.start(laboratory, ["localsend-cli", "receive", "--json", "--output", received])
                let id = try await Self.device(bob, "localsend-cli")
                // The receiver stores a chunked body with its chunk headers, so that the content shows how the daemon uploads.
                try await bob.expect(0, "file", "send", id, song)
                #expect(try await LAN.equal(song, "\(received)/song.flac"))
                receiver.signal(SIGKILL)

                let sender = try Self.start(laboratory, ["localsend-cli", "send", Laboratory.bobsAddress, song, "--json"])
                // The sender waits for 10 s.
                let offer = try await bob.awaitOffer()
                #expect(offer["peer_id"]?.string == nil, "the sender shows no certificate")
                try await bob.expect(0, "accept", try #require(offer["id"]?.string))
                let outcome = await sender.outcome()
                #expect(outcome.status == 0 && outcome.output.contains("\"sent\""), "\(outcome)")
                try await bob.awaitFiles(["song.flac": "completed"])
                try await bob.expect(0, "file", "get", "song.flac")
                #expect(try await LAN.equal(song, "\(bob.place)/song.flac"))
            }
        }
    }
}
