import ArgumentParser
import EarshotClient
import Foundation
import ModelLaws
import Testing

@testable import EarshotCLI

struct FailureTests {
    @Test(arguments: [
        ("invalid-parameter", 64), ("unsupported", 64), ("ambiguous-peer", 65), ("not-found", 65), ("name-rejected", 65), ("too-large", 65),
        ("invalid-source", 66), ("unknown-peer", 68), ("ambiguous-group", 65),
        ("unknown-group", 68), ("not-member", 68), ("storage", 74), ("no-space", 74), ("source-changed", 74), ("timed-out", 75),
        ("unconfirmed", 75), ("not-sent", 79), ("unavailable", 75), ("busy", 75), ("inbox-full", 75), ("identity-mismatch", 76),
        ("encryption-mismatch", 76),
        ("downgrade-detected", 76), ("version-unsupported", 76), ("service-mismatch", 76), ("protocol-violation", 76),
        ("digest-mismatch", 76), ("declined", 77), ("forbidden", 77), ("not-connected", 77), ("cancelled", 1), ("conflict", 1),
        ("something-new", 1),
    ])
    func everyCodeHasItsExitCode(_ code: String, _ status: Int32) {
        #expect(ExitStatus(code: Tolerant(rawValue: code)).rawValue == status)
        #expect(status == 1 || Tolerant<ControlAPI.ErrorCode>(rawValue: code).known != nil)
    }

    @Test func theWorstOfSeveralIsWhatTryingAgainWillNotMend() {
        #expect(ExitStatus.worst([]) == .done)
        #expect(ExitStatus.worst([.done, .temporary]) == .temporary)
        #expect(ExitStatus.worst([.temporary, .done, .denied]) == .denied)
        #expect(ExitStatus.worst([.notSent, .denied]) == .denied)
        #expect(ExitStatus.worst([.notSent, .temporary]) == .temporary, "one of them may have arrived")
        #expect(ExitStatus.worst([.done, .notSent]) == .notSent)
    }

    @Test func anAbsentDaemonIsSaidAndWhatToDo() {
        let report = FailureReport(ControlError.unreachable(path: "/s", reason: "no such file or directory", code: 2))
        #expect(report.status == 69)
        #expect(
            report.lines == [
                "earshot: no daemon answers at /s: no such file or directory", "start it: sudo systemctl start earshotd, or run earshotd",
            ])
        #expect(FailureReport(ControlError.unreachable(path: "/s", reason: "permission denied", code: 13)).status == 77)
    }

    @Test func whatTheDaemonEscapedIsNotEscapedTwice() {
        let failure = CommandFailure(code: "name-rejected", message: #"the name "a\nb" contains a control character"# + "\u{1B}[31m")
        #expect(failure.message == #"the name "a\nb" contains a control character\e[31m"#)
    }

    @Test(arguments: [[], ["file"], ["group"]]) func aMissingVerbIsAUsageError(_ arguments: [String]) async throws {
        var command = try #require(try EarshotCommand.parseAsRoot(arguments) as? any AsyncParsableCommand)
        let failure = await #expect(throws: CommandFailure.self) { try await command.run() }
        #expect(failure?.status == .usage)
    }

    @Test func aMissingSessionNamesThePeerToInvite() {
        let failure = CommandFailure(code: "not-connected", message: "there is no session with bob", peer: "bob")
        #expect(
            failure
                == CommandFailure(
                    .denied, "there is no session with bob", hint: "ask for a session first: earshot invite bob", code: "not-connected"))
        #expect(CommandFailure(code: nil, message: "no").status == .failure)
    }

    /// The daemon names the remedy, and the command line prints the command for it.
    @Test(arguments: ControlAPI.Remedy.allCases) func everyRemedyIsACommand(_ remedy: ControlAPI.Remedy) throws {
        let hint = try #require(CommandFailure(code: .known(.forbidden), message: "no", remedy: .known(remedy), peer: "b\nob").hint)
        #expect(hint.contains("earshot ") || remedy == .nameSender)
        #expect(!hint.contains("\n"))
        #expect(CommandFailure(code: .known(.forbidden), message: "no", remedy: "something-new", peer: "bob").hint == nil)
    }

    /// The daemon gives advice only for a message. A file was refused because of the receiver's settings, so advice to send it as a file is
    /// wrong.
    @Test func whatIsTooLargeIsNotToldToGoAsAFileAgain() {
        #expect(CommandFailure(code: "too-large", message: "bob did not take it: it is larger than 1024 bytes", peer: "bob").hint == nil)
    }

    @Test func anAmbiguousNameListsWhomItMayMean() {
        let problem = ControlAPI.Problem(
            title: "Conflict", status: 409, detail: "al may mean two", code: "ambiguous-peer",
            candidates: [.init(id: "A", name: "al"), .init(id: "B", name: "a\u{202E}l")])
        let report = FailureReport(ControlError.problem(problem))
        #expect(report.status == 65)
        let fill = String(repeating: "A", count: 51)
        #expect(report.lines.last == "choose one by its id:\n  A\(fill)  al\n  B\(fill)  a\\u{202E}l")
    }

    @Test(arguments: [
        ["peers", "--bogus"], ["bogus"], ["send"], ["send", "bob"], ["send", "bob", "x", "--timeout", "soon"], ["receive", "--count", "0"],
        ["file", "send", "bob"], ["send", "bob", "x", "--file", "y"], ["events", "--since", "-1"], ["accept"],
        ["group", "create"], ["group", "show"], ["group", "invite", "team"], ["group", "remove", "team"], ["group", "rename", "team"],
        ["send", "--group", "team"], ["send", "--group", "", "x"], ["send", "--all", "--group", "team", "x"],
        ["send", "--group", "team", "--to", "bob", "x"], ["receive", "--group", ""],
    ])
    func misuseIs64InOurVoice(_ arguments: [String]) throws {
        let error = try #require(throws: (any Error).self) { try EarshotCommand.parseAsRoot(arguments) }
        let report = FailureReport(error)
        #expect(report.status == 64)
        #expect(report.output == nil)
        #expect(report.lines.count == 2)
        let first = try #require(report.lines.first)
        #expect(first.hasPrefix("earshot: "))
        #expect(first.dropFirst(9).first?.isUppercase == false)
        #expect(!first.hasSuffix("."))
        #expect(report.lines.last?.contains("earshot") == true)
    }

    private struct Document: Decodable, Equatable {
        struct Failure: Decodable, Equatable {
            let code: String
            let message: String?
            let hint: String?
            let exit_status: Int32
        }

        let error: Failure
    }

    private func document(_ error: any Error) throws -> Document.Failure {
        let json = try #require(FailureReport(error).json)
        return try JSONDecoder().decode(Document.self, from: Data(json)).error
    }

    @Test func aFailureIsOneJSONDocument() throws {
        let missing = CommandFailure(code: "not-connected", message: "there is no session with bob", peer: "bob")
        #expect(
            try self.document(missing)
                == .init(
                    code: "not-connected", message: "there is no session with bob", hint: "ask for a session first: earshot invite bob",
                    exit_status: 77))
        let told = try self.document(CommandFailure(.temporary, nil, code: "unconfirmed"))
        #expect(told == .init(code: "unconfirmed", message: nil, hint: nil, exit_status: 75))
        let absent = try self.document(ControlError.unreachable(path: "/s", reason: "no", code: 2))
        #expect(absent.code == "no-daemon" && absent.exit_status == 69)
        let misuse = try #require(throws: (any Error).self) { try EarshotCommand.parseAsRoot(["peers", "--bogus"]) }
        let usage = try self.document(misuse)
        #expect(usage.code == "usage" && usage.exit_status == 64 && usage.message?.hasPrefix("unknown option") == true)
        #expect(FailureReport.isJSON(["earshot", "peers", "--json"]) && !FailureReport.isJSON(["earshot", "send", "bob", "--", "--json"]))
    }

    /// The table of earshot(1) has the same codes, and every exit status of a code.
    @Test func theManualHasEveryCode() throws {
        let path = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Sources/manual/Articles/earshot.md")
        let rows = try String(contentsOf: path.standardized, encoding: .utf8).split(separator: "\n")
            .drop { !$0.hasPrefix("| exit status |") }.dropFirst(2).prefix { $0.hasPrefix("|") }
        var listed: Set<EarshotCLI.ExitStatus> = [.done]
        for row in rows {
            let cells = row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            let status = try #require(Int32(cells[0]).flatMap(EarshotCLI.ExitStatus.init(rawValue:)))
            listed.insert(status)
            let codes = cells[1].split(separator: ",").map { $0.trimmingCharacters(in: CharacterSet(charactersIn: " `")) }
            #expect(codes.contains(status.code))
            let own: Set = [status.code, "daemon-lost", "daemon-silent", "daemon-malformed"]
            for code in codes where !own.contains(code) { #expect(ExitStatus(code: Tolerant(rawValue: code)) == status, "\(code)") }
        }
        #expect(listed == Set(EarshotCLI.ExitStatus.allCases))
    }

    @Test(arguments: [["--help"], ["send", "--help"], ["--version"]])
    func helpIsNoError(_ arguments: [String]) throws {
        let error = try #require(throws: (any Error).self) {
            // For the parser, the help of a verb is a command, which prints the help when it runs.
            var command = try EarshotCommand.parseAsRoot(arguments)
            try command.run()
        }
        let report = FailureReport(error)
        #expect(report.status == 0)
        #expect(report.lines.isEmpty)
        #expect(report.output?.isEmpty == false)
    }

    @Test func everyVerbIsInTheHelp() {
        let help = EarshotCommand.helpMessage(includeHidden: true, columns: 80)
        for verb in [
            "status", "peers", "sessions", "events", "invite", "invitations", "accept", "reject", "block", "unblock", "trust", "distrust",
            "verify", "leave", "send", "receive", "group", "file", "stream", "identity", "policy", "doctor",
        ] { #expect(help.contains("  \(verb) ")) }
    }
}
