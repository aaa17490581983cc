import Testing

@testable import EarshotClient

struct ControlPathTests {
    @Test(arguments: [
        ("bob", "bob"), ("..", "%2E%2E"), ("a/b?c#d", "a%2Fb%3Fc%23d"), ("é", "%C3%A9"), ("100%", "100%25"), ("a b", "a%20b"),
    ])
    func aNameStaysOneSegment(_ name: String, _ encoded: String) {
        #expect(ControlPath.path(["peers", name]) == "/v1/peers/" + encoded)
    }

    @Test func aQueryItemWithoutAValueIsLeftOut() {
        #expect(
            ControlPath.path(["messages"], query: [("from", nil), ("state", "all"), ("x", "a&b=c")]) == "/v1/messages?state=all&x=a%26b%3Dc"
        )
        #expect(ControlPath.path(["messages"], query: [("from", nil)]) == "/v1/messages")
    }

    @Test func theSocketIsTheGivenOneThenTheEnvironmentsThenTheUsersThenTheSystems() {
        let variables = ["EARSHOT_SOCKET": "/env", "XDG_RUNTIME_DIR": "/run/user/1"]
        let user = "/run/user/1/earshot/earshot.sock"
        func path(_ given: String?, _ names: [String], _ exists: Bool) -> String {
            ControlSocket.path(given: given, environment: { names.contains($0) ? variables[$0] : nil }, exists: { exists && $0 == user })
        }
        #expect(path("/given", ["EARSHOT_SOCKET", "XDG_RUNTIME_DIR"], true) == "/given")
        #expect(path(nil, ["EARSHOT_SOCKET", "XDG_RUNTIME_DIR"], true) == "/env")
        #expect(path(nil, ["XDG_RUNTIME_DIR"], true) == user)
        #expect(path(nil, ["XDG_RUNTIME_DIR"], false) == "/run/earshot/earshot.sock")
        #expect(path(nil, [], true) == "/run/earshot/earshot.sock")
    }
}
