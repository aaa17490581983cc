import ArgumentParser
import Foundation
import Testing

@testable import EarshotCLI
@testable import earshotd
@testable import manual

/// Every `earshot` and `earshotd` command in the documents is checked against the programs' own grammar. `Tests/documentation/check` runs
/// them.
@Suite struct CommandTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// Returns the documents with their file names.
    private static func documents() throws -> [(name: String, text: String)] {
        let files = FileManager.default.enumerator(at: Self.root.appending(path: "Sources"), includingPropertiesForKeys: nil)
        let articles = (files?.compactMap { $0 as? URL } ?? []).filter { $0.pathExtension == "md" }
        return try ([Self.root.appending(path: "README.md")] + articles).map {
            ($0.lastPathComponent, try String(contentsOf: $0, encoding: .utf8))
        }
    }

    /// Returns the commands in a text: after `$` in blocks, and between backticks everywhere else.
    private static func commands(in text: String) -> [String] {
        let parts = text.components(separatedBy: "\n```")
        var found: [String] = []
        for (index, part) in parts.enumerated() {
            guard index % 2 == 0 else {
                let lines = part.replacingOccurrences(of: "\\\n", with: " ").split(separator: "\n")
                found += lines.compactMap { line in line.firstMatch(of: /^\w*\$ (.*)$/).map { String($0.1) } }
                continue
            }
            found += part.matches(of: /`([^`]+)`/).map { $0.1.replacingOccurrences(of: "\n", with: " ") }
        }
        return found
    }

    /// Returns the simple commands of a shell line, as words.
    private static func words(of line: String) -> [[String]] {
        var commands: [[String]] = [[]]
        var word: String?
        var quote: Character?
        func flush() {
            if let word { commands[commands.count - 1].append(word) }
            word = nil
        }
        for character in line {
            if character == quote {
                quote = nil
            } else if quote != nil {
                word = (word ?? "") + String(character)
            } else if "'\"".contains(character) {
                quote = character
                word = word ?? ""
            } else if character == "#", word == nil {
                break
            } else if "|;&()<>".contains(character) {
                flush()
                commands.append([])
            } else if character == " " {
                flush()
            } else {
                word = (word ?? "") + String(character)
            }
        }
        flush()
        return commands
    }

    /// Returns the program's name and arguments in a command, without the words before the name.
    private static func program(_ words: [String]) -> (name: String, arguments: [String])? {
        guard let place = words.firstIndex(where: { $0 == "earshot" || $0 == "earshotd" }), place + 1 < words.count else { return nil }
        let before = words[..<place]
        // `adduser NAME earshot` names a group, and `-u earshot` a user.
        guard before.allSatisfy({ ["sudo", "env", "exec"].contains($0) || $0.contains("=") || $0.hasPrefix("$") }) else {
            return before.last == "-u" && before.first == "sudo" ? Self.program(Array(words[(place + 1)...])) : nil
        }
        return (words[place], Array(words[(place + 1)...]))
    }

    @Test func everyCommandIsOne() throws {
        let verbs = try CommandDump(json: Array(EarshotCommand._dumpHelp().utf8)).command
        var count = 0
        for (document, text) in try Self.documents() {
            for (name, arguments) in Self.commands(in: text).flatMap(Self.words).compactMap(Self.program) {
                count += 1
                // A verb alone is a name, even if the verb requires arguments.
                if name == "earshot", Self.isVerb(arguments, of: verbs) { continue }
                do {
                    _ = try name == "earshot" ? EarshotCommand.parseAsRoot(arguments) : EarshotDaemon.parseAsRoot(arguments)
                } catch {
                    Issue.record("\(document): \(name) \(arguments.joined(separator: " ")): \(EarshotCommand.message(for: error))")
                }
            }
        }
        #expect(count > 150)
    }

    /// The verb for each call of the API, by the call's `operationId`. The document itself is for programs.
    private static let verbs = [
        "getStatus": "status", "listPeers": "peers", "getPeer": "peers", "setTrust": "trust", "setAlias": "peer name",
        "removeAlias": "peer name", "explainPolicy": "policy explain", "pingPeer": "ping", "startVerification": "verify",
        "getVerification": "verify", "stopVerification": "verify", "invite": "invite", "listInvitations": "invitations",
        "getInvitation": "invitations", "withdrawInvitation": "invite", "respondToInvitation": "accept", "listSessions": "sessions",
        "leaveSession": "leave", "createGroup": "group create", "listGroups": "group list", "getGroup": "group show",
        "renameGroup": "group rename", "leaveGroup": "group leave", "inviteToGroup": "group invite", "removeMember": "group remove",
        "sendMessage": "send", "listMessages": "receive", "getMessage": "outbox show", "readMessages": "receive",
        "listOutbox": "outbox list",
        "cancelQueuedMessage": "outbox cancel", "readMessage": "receive", "openStream": "stream open",
        "openStreamFromDescriptor": "stream open", "listStreams": "stream list",
        "readNextStream": "stream accept", "getStream": "stream list", "abortStream": "stream cancel", "readStream": "stream accept",
        "sendResource": "file send", "listResources": "file list", "getResource": "file list", "removeResource": "file cancel",
        "getResourceContent": "file get", "dropResourceContent": "file delete", "respondToResource": "file accept", "readEvents": "events",
        "getMetrics": "metrics", "listSettings": "config list", "reloadSettings": "config set",
    ]

    @Test func everyCallOfTheAPIHasAVerb() throws {
        struct Document: Decodable {
            struct Call: Decodable { let operationId: String? }
            let paths: [String: [String: Call]]
        }
        let json = try Data(contentsOf: Self.root.appending(path: "Sources/earshotd/OpenAPI/openapi.json"))
        let calls = try JSONDecoder().decode(Document.self, from: json).paths.values.flatMap(\.values).compactMap(\.operationId)
        #expect(Set(calls) == Set(Self.verbs.keys).union(["getOpenAPI"]))
        let command = try CommandDump(json: Array(EarshotCommand._dumpHelp().utf8)).command
        for verb in Self.verbs.values { #expect(Self.isVerb(verb.split(separator: " ").map(String.init), of: command), "\(verb)") }
    }

    private static func isVerb(_ words: [String], of command: CommandDump.Command) -> Bool {
        guard let first = words.first else { return true }
        return command.verbs.first { $0.commandName == first }.map { Self.isVerb(Array(words.dropFirst()), of: $0) } ?? false
    }

    @Test(arguments: [
        ("tar c a | earshot stream open bob b # words", ["earshot", "stream", "open", "bob", "b"]),
        ("sudo -u earshot earshotd identity show", ["earshotd", "identity", "show"]),
        ("A=b earshot invite bob --context 'shall we talk?' &", ["earshot", "invite", "bob", "--context", "shall we talk?"]),
        ("sudo env $(systemctl show earshotd) A=b earshotd --check-config", ["earshotd", "--check-config"]),
    ])
    func linesAreTakenApart(line: String, words: [String]) {
        let found = Self.words(of: line).compactMap(Self.program).map { [$0.name] + $0.arguments }
        #expect(found == [words])
    }

    @Test func groupsAndUsersAreNoPrograms() {
        #expect(Self.words(of: "sudo adduser NAME earshot").compactMap(Self.program).isEmpty)
        #expect(Self.words(of: "sudo -u earshot ls").compactMap(Self.program).isEmpty)
    }

    @Test func exitCodesAreTheProgramsOwn() throws {
        let known = Set(EarshotPage.exitCodes.map(\.code))
        let text = try #require(try Self.documents().first { $0.name == "earshot-troubleshooting.md" }).text
        let codes = text.matches(of: /\ \((\d+)\) \|/).compactMap { Int32($0.1) }
        #expect(codes.count >= 8 && codes.allSatisfy(known.contains))
    }
}
