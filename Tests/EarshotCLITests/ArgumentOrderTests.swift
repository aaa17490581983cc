import ArgumentParser
import Testing

@testable import EarshotCLI

@Suite struct ArgumentOrderTests {
    @Test(arguments: [
        (["peeers", "--json"], "unknown command 'peeers'; did you mean peers?"), (["bogus"], "unknown command 'bogus'"),
        (["help", "frobnicate"], "unknown command 'frobnicate'"),
        (["help", "file", "sned"], "unknown command 'file sned'; did you mean file send?"),
        (["file", "lsit"], "unknown command 'file lsit'; did you mean file list?"),
        (["gropu"], "unknown command 'gropu'; did you mean group?"),
        (["Peers"], "unknown command 'Peers'; did you mean peers?"), (["stat"], "unknown command 'stat'; did you mean status?"),
        (["x"], "unknown command 'x'"), ([""], "unknown command ''"), (["p\u{1B}s"], #"unknown command 'p\es'"#),
    ])
    func aMistypedVerbIsNamed(_ words: [String], _ message: String) {
        let failure = #expect(throws: CommandFailure.self) { try CommandNames.check(words) }
        #expect(failure?.status == .usage && failure?.message == message, "\(failure?.message ?? "")")
    }

    @Test(arguments: [
        [], ["--help"], ["--bogus", "x"], ["help"], ["help", "peers"], ["help", "file", "send"], ["peers", "--json"], ["file", "list"],
        ["file", "--help"], ["send", "bob", "sned"], ["identity", "show"], ["policy", "explain", "bob"], ["help", "help"],
    ])
    func everyOtherWordIsTheParsers(_ words: [String]) {
        #expect(throws: Never.self) { try CommandNames.check(words) }
    }

    @Test func everyVerbIsFound() throws {
        for group in EarshotCommand.configuration.groupedSubcommands {
            for command in group.subcommands { try CommandNames.check([try #require(command.configuration.commandName)]) }
        }
    }

    @Test(arguments: [
        (["--socket", "/s", "peers"], ["peers", "--socket", "/s"]),
        (["--json", "--socket=/s", "peers", "--watch"], ["peers", "--json", "--socket=/s", "--watch"]),
        (["--json", "file", "list", "--watch"], ["file", "list", "--json", "--watch"]),
        (["--socket", "/s", "group", "create", "team"], ["group", "create", "--socket", "/s", "team"]),
        (["--json", "policy", "explain", "bob"], ["policy", "explain", "--json", "bob"]),
        (["--json", "stream", "list"], ["stream", "list", "--json"]),
        (["--json", "identity", "show"], ["identity", "show", "--json"]),
        (["--json", "send", "bob", "--", "--socket"], ["send", "--json", "bob", "--", "--socket"]),
        (["send", "bob", "--json"], ["send", "bob", "--json"]),
        (["--socket"], ["--socket"]),
        (["--json"], ["--json"]),
        (["--json", "--help"], ["--json", "--help"]),
        ([], []),
    ]) func commonOptionsMoveBehindTheVerb(_ given: [String], _ expected: [String]) {
        #expect(ArgumentOrder.verbFirst(given) == expected)
    }
}
