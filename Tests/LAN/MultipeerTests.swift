import Foundation
import Testing

extension LAN {
    /// Programs with `MultipeerConnectivity`, each on its own host: every program advertises, browses and invites all others.
    @Suite struct Multipeer {
        private func hosts(_ count: Int, _ laboratory: Laboratory) async throws -> [String] {
            let hosts = (1...count).map { "peer\($0)" }
            for (number, host) in hosts.enumerated() { try await laboratory.ownHost(host, "10.77.0.\(110 + number)") }
            return hosts
        }

        private func chat(on host: String, _ laboratory: Laboratory) throws -> TypedProgram {
            try TypedProgram("multipeer-chat", host, on: host, laboratory)
        }

        /// Restarts the first program after a kill. It and the others receive each other's messages, and the others see one loss and one
        /// return.
        private func firstIsBack(_ chats: [TypedProgram]) async throws {
            try chats[0].type("again")
            for chat in chats.dropFirst() {
                try await chat.has("\(chats[0].name): again")
                try chat.type("welcome")
                try await chats[0].has("\(chat.name): welcome")
                #expect(chat.lines.count { $0.hasPrefix("* ") } == chats.count + 1, "\(chat.lines)")
            }
        }

        /// All programs are connected, and each has received one message from each.
        private func together(_ chats: [TypedProgram], _ word: String, times: Int = 1) async throws {
            for chat in chats {
                for other in chats where other !== chat { try await chat.has("* \(other.name) is here", times: times) }
            }
            for chat in chats { try chat.type(word) }
            for chat in chats {
                for other in chats where other !== chat { try await chat.has("\(other.name): \(word)") }
            }
        }

        @Test(arguments: [3, 8]) func programsFormOneMesh(_ count: Int) async throws {
            try await Laboratory.run { laboratory in
                let hosts = try await self.hosts(count, laboratory)
                let began = ContinuousClock.now
                var chats: [TypedProgram] = []
                for host in hosts { chats.append(try self.chat(on: host, laboratory)) }
                try await self.together(chats, "hello")
                measured("\(count) programs on \(count) hosts are one mesh, and have heard each other", ContinuousClock.now - began)
                for chat in chats {
                    #expect(chat.lines.count == 2 * (count - 1), "nothing twice, and nobody lost: \(chat.name) reads \(chat.lines)")
                }
                // One program is killed, and returns as another peer with the same name.
                let killed = ContinuousClock.now
                chats[0].running.signal(SIGKILL)
                for chat in chats.dropFirst() { try await chat.has("* \(hosts[0]) is not here") }
                measured("a killed one of \(count) is missed by all", ContinuousClock.now - killed)
                chats[0] = try self.chat(on: hosts[0], laboratory)
                for chat in chats.dropFirst() {
                    try await chat.has("* \(hosts[0]) is here", times: 2)
                    try await chats[0].has("* \(chat.name) is here")
                }
                try await self.firstIsBack(chats)
            }
        }

        /// A program that restarts before its loss is noticed replaces its predecessor, which is still advertised and found.
        @Test(arguments: [3, 8]) func killedAndStartedAtOnce(_ count: Int) async throws {
            try await Laboratory.run { laboratory in
                let hosts = try await self.hosts(count, laboratory)
                var chats: [TypedProgram] = []
                for host in hosts { chats.append(try self.chat(on: host, laboratory)) }
                try await self.together(chats, "hello")
                chats[0].running.signal(SIGKILL)
                let began = ContinuousClock.now
                chats[0] = try self.chat(on: hosts[0], laboratory)
                for chat in chats.dropFirst() {
                    try await chats[0].has("* \(chat.name) is here")
                    try await chat.has("* \(hosts[0]) is here", times: 2)
                    try await chat.has("* \(hosts[0]) is not here")
                }
                measured("a killed one of \(count) that starts at once is back", ContinuousClock.now - began)
                try await self.firstIsBack(chats)
            }
        }

        /// The example that is a peer itself, with Earshot's own library.
        @Test func programsThatArePeersChat() async throws {
            try await Laboratory.run { laboratory in
                var chats: [TypedProgram] = []
                for host in try await self.hosts(3, laboratory) {
                    chats.append(try TypedProgram("peer-chat", host, on: host, laboratory))
                }
                try await self.together(chats, "hello")
            }
        }
    }
}
