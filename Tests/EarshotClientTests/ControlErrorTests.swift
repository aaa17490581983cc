import EarshotClient
import Foundation
import Testing

/// Errors have readable descriptions, also for programs that do not know this library.
@Suite struct ControlErrorTests {
    @Test(arguments: [
        (
            ControlError.unreachable(path: "/s", reason: "connection refused", code: 111),
            "the daemon at /s is unreachable: connection refused"
        ),
        (.silent(path: "/s"), "the daemon at /s does not answer"),
        (.lost(path: "/s", reason: "broken pipe"), "the daemon at /s went away: broken pipe"),
        (.problem(.init(title: "Not Found", status: 404, detail: "there is no peer bob", code: "unknown-peer")), "there is no peer bob"),
        (.problem(.init(title: "Not Found", status: 404, code: "unknown-peer")), "Not Found"),
        (.malformed("not JSON"), "not JSON"), (.source("cannot read x"), "cannot read x"),
        (.output(reason: "no space left on device", code: 28), "cannot write what was received: no space left on device"),
        (.cancelled, "cancelled"),
    ]) func everyErrorHasItsWords(error: ControlError, words: String) {
        #expect("\(error)" == words)
        #expect((error as any Error).localizedDescription == words)
    }
}
