import EarshotClient
import Foundation
import Testing

extension LAN {
    /// The effects of firewalls on data connections while the control connection is open.
    @Suite struct Firewalls {
        /// For each host that admits no new connections: whichever side can dial does so; if neither can, the control connection carries
        /// everything.
        @Test(arguments: [["alice"], ["bob"], ["alice", "bob"]])
        func noNewConnections(to walled: [String]) async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                try await LAN.make("north", mebibytes: 6, at: alice)
                try await LAN.make("south", mebibytes: 6, at: bob)
                try await Self.walls(laboratory) {
                    for daemon in [alice, bob] {
                        let port = try await Self.port(daemon)
                        let verdict = walled.contains(daemon.name) ? "drop" : "accept"
                        let rule = "tcp dport \(port) tcp flags syn counter \(verdict)"
                        try await Self.nft(laboratory, daemon.host, "add rule inet wall in \(rule)")
                    }
                    let began = ContinuousClock.now
                    let files = [try alice.begin(["file", "send", "bob", "north"]), try bob.begin(["file", "send", "alice", "south"])]
                    let pipes = [try Self.pipe(laboratory, from: alice, to: bob), try Self.pipe(laboratory, from: bob, to: alice)]
                    for file in files {
                        let outcome = await file.outcome()
                        #expect(outcome.status == 0, "\(outcome)")
                    }
                    try await eventually("what came through the pipes first is there") {
                        let streams = try await alice.streams() + bob.streams()
                        return streams.count == 4 && streams.allSatisfy { $0.transferred >= 2 << 20 }
                    }
                    if walled.count < 2 {
                        let ports = [try await Self.port(alice), try await Self.port(bob)]
                        try await eventually("each stream has a connection of its own") {
                            try await Self.connections(laboratory, of: ports).count == 3
                        }
                    }
                    for daemon in [alice, bob] { try Data().write(to: URL(fileURLWithPath: "\(daemon.place)/more")) }
                    for pipe in pipes {
                        let outcome = await pipe.outcome()
                        #expect(outcome.status == 0, "\(outcome)")
                    }
                    measured("files and streams both ways, walled: \(walled.joined(separator: " and "))", ContinuousClock.now - began)
                    for daemon in [alice, bob] {
                        // Each side sends and receives a file and a stream: four data connections, or none.
                        let counted = try await Self.dials(laboratory, daemon.host)
                        switch (walled.contains(daemon.name), walled.count) {
                        case (false, _): #expect(counted == 4, "whoever can dial has dialled")
                        case (true, 2): #expect(counted >= 2, "both were tried")
                        case (true, _): break
                        }
                    }
                }
                try await bob.expect(0, "file", "get", "north")
                try await alice.expect(0, "file", "get", "south")
                #expect(try await LAN.equal("\(alice.place)/north", "\(bob.place)/north"))
                #expect(try await LAN.equal("\(bob.place)/south", "\(alice.place)/south"))
            }
        }

        /// The ways in which a data connection ends, for each transport: by a reset, or by a silent path, which only the kernel's
        /// keep-alive probes reveal.
        @Test(arguments: [("reset", "none"), ("silent", "required")])
        func aDataConnectionIsCut(_ how: String, _ encryption: String) async throws {
            try await Laboratory.run { laboratory in
                let environment = ["EARSHOT_PEER_ENCRYPTION": encryption, "EARSHOT_INVITATIONS_FROM_UNKNOWN": "accept"]
                let alice = try await laboratory.daemon("alice", environment: environment)
                let bob = try await laboratory.daemon("bob", environment: environment)
                try await alice.awaitPeer(bob)
                try await alice.expect(0, "invite", bob.id())
                try await bob.awaitConnected(to: alice)
                let ports = [try await Self.port(alice), try await Self.port(bob)]
                let control = try await Self.connections(laboratory, of: ports)
                try #require(control.count == 1)
                try await LAN.make("film.mkv", mebibytes: 16, at: alice)
                try await Self.walls(laboratory) {
                    try await LAN.slowly(laboratory) {
                        let sending = try alice.begin(["file", "send", "bob", "film.mkv"])
                        try await eventually("a part is there") { try await bob.files().contains { $0.transferred > 1 << 20 } }
                        let data = try #require(try await Self.connections(laboratory, of: ports).subtracting(control).first)
                        let cut = ContinuousClock.now
                        try await Self.cut(data, how, laboratory)
                        let kept = try #require(try await bob.files().first).transferred
                        try #require(kept < 12 << 20, "enough is left for another data connection")
                        // The data in the sockets still arrives; further data needs another connection.
                        try await eventually(within: .seconds(40), "another data connection stands") {
                            try await !Self.connections(laboratory, of: ports).subtracting(control).subtracting([data]).isEmpty
                        }
                        measured("another data connection after one was cut: \(how)", ContinuousClock.now - cut)
                        #expect(try #require(try await bob.files().first).transferred >= kept, "what had arrived is not sent again")
                        let outcome = await sending.outcome()
                        #expect(outcome.status == 0, "\(outcome)")
                        #expect(try await Self.connections(laboratory, of: ports).isSuperset(of: control), "the control connection stands")
                    }
                }
                try await bob.expect(0, "file", "get", "film.mkv")
                #expect(try await LAN.equal("\(alice.place)/film.mkv", "\(bob.place)/film.mkv"))
            }
        }

        // MARK: - Firewalls

        private static func port(_ daemon: Daemon) async throws -> Int { try #require(try await daemon.status().local?.port) }

        /// The ports of a connection, at alice's end and at bob's.
        private struct Ends: Hashable {
            let alice: String
            let bob: String
        }

        /// The open connections between the two daemons, from alice's kernel.
        private static func connections(_ laboratory: Laboratory, of ports: [Int]) async throws -> Set<Ends> {
            let listed = try await laboratory.lab("host", "exec", "alice", "--", "ss", "-Htn", "state", "established").output
            let pairs = listed.split(separator: "\n").compactMap { line -> Ends? in
                let words = line.split(separator: " ")
                guard words.count >= 4, let alice = words[2].split(separator: ":").last, let bob = words[3].split(separator: ":").last
                else { return nil }
                return Ends(alice: String(alice), bob: String(bob))
            }
            return Set(pairs.filter { [$0.alice, $0.bob].contains { ports.map(String.init).contains($0) } })
        }

        private static func cut(_ data: Ends, _ how: String, _ laboratory: Laboratory) async throws {
            let rule = "tcp sport \(data.alice) tcp dport \(data.bob)"
            if how == "silent" {
                try await self.nft(laboratory, "bob", "add rule inet wall in \(rule) drop")
                try await self.nft(laboratory, "alice", "add rule inet wall in tcp sport \(data.bob) tcp dport \(data.alice) drop")
            } else {
                try await self.nft(laboratory, "bob", "add rule inet wall in \(rule) reject with tcp reset")
                // Once alice's end has the reset, her kernel resets bob's end when his kernel probes.
                try await eventually("alice's end is gone") {
                    let ports = [data.alice, data.bob].compactMap { Int($0) }
                    return try await !self.connections(laboratory, of: ports).contains(data)
                }
                try await self.nft(laboratory, "bob", "flush chain inet wall in")
            }
        }

        /// Runs `body` with an empty table on both hosts, and removes the table afterwards.
        private static func walls(_ laboratory: Laboratory, _ body: () async throws -> Void) async throws {
            for host in ["alice", "bob"] {
                try await self.nft(laboratory, host, "add table inet wall; add chain inet wall in { type filter hook input priority 0; }")
            }
            let result: Result<Void, any Error>
            do {
                result = .success(try await body())
            } catch {
                result = .failure(error)
            }
            for host in ["alice", "bob"] { try await self.nft(laboratory, host, "delete table inet wall") }
            try result.get()
        }

        private static func nft(_ laboratory: Laboratory, _ host: String, _ command: String) async throws {
            try await laboratory.lab("host", "exec", host, "--", "nft", command)
        }

        /// The number of first packets of connections that a host has counted.
        private static func dials(_ laboratory: Laboratory, _ host: String) async throws -> Int {
            let table = try await laboratory.lab("host", "exec", host, "--", "nft", "list", "table", "inet", "wall").output
            let words = table.split(whereSeparator: \.isWhitespace)
            let place = try #require(words.firstIndex(of: "packets"))
            return try #require(Int(words[place + 1]))
        }

        /// Sends two mebibytes through a stream, and two more once there is a file `more`; the bytes are compared at the end.
        private static func pipe(_ laboratory: Laboratory, from: Daemon, to: Daemon) throws -> Running {
            let earshot = "\(Laboratory.binaries)/earshot"
            func command(_ daemon: Daemon) -> String {
                "EARSHOT_SOCKET='\(daemon.socket)' '\(Laboratory.script)' host exec \(daemon.host) -- '\(earshot)' stream"
            }
            let script = """
                set -e; cd '\(from.place)'; head -c 4M /dev/urandom > in
                \(command(to)) accept \(from.name) > out &
                reader=$!
                { head -c 2M in; until [ -e more ]; do sleep 0.1; done; tail -c 2M in; } | \(command(from)) open \(to.name) \(from.name)
                wait $reader; cmp in out
                """
            return try Running(["/bin/bash", "-c", script])
        }
    }
}
