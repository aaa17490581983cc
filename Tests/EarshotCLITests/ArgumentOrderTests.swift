import Testing

@testable import EarshotCLI

@Suite struct ArgumentOrderTests {
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
