import EarshotClient
import Foundation
import Testing

extension LAN {
    /// Commands that run until they are interrupted.
    @Suite struct Following {
        @Test func theyOutliveTheDaemon() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                let receiving = try bob.begin(["receive", "--follow", "--raw"])
                let reading = try bob.begin(["events", "--json"])
                let watching = try bob.begin(["peers", "--watch", "--json"])
                let all = [receiving, reading, watching]
                try await alice.expect(0, "send", "bob", "before")
                try await eventually("bob reads it") { receiving.outputSoFar() == "before" }
                #expect(try await bob.stop() == 0)
                let note = "earshot: lost the connection to the daemon; waiting for it to return\n"
                for running in all { try await eventually("it is said", instead: running.errorsSoFar) { running.errorsSoFar() == note } }
                try await bob.start()
                try await alice.expect(0, "send", "bob", "after", "--timeout", "60")
                try await eventually("bob reads on") { receiving.outputSoFar() == "beforeafter" }
                for running in [reading, watching] {
                    try await eventually("the gap is told") { running.outputSoFar().contains(#""type":"gap""#) }
                }
                for running in all {
                    running.signal(SIGTERM)
                    #expect(await running.outcome().errors == note, "said once")
                }
            }
        }
    }
}
