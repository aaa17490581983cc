import Earshot
import Testing

@testable import EarshotDiscovery

/// Discovery's limits, each at its edge.
@Suite struct DiscoveryLimitTests {
    @Test func instanceNameBytes() throws {
        try InstanceName.check("a")
        try InstanceName.check(String(repeating: "a", count: DiscoveryLimits.instanceNameBytes))
        for name in [
            "", String(repeating: "a", count: DiscoveryLimits.instanceNameBytes + 1),
            // Bytes count, not characters.
            String(repeating: "é", count: DiscoveryLimits.instanceNameBytes / 2 + 1), "a\0b",
        ] {
            #expect(throws: InstanceName.Invalid.self) { try InstanceName.check(name) }
        }
    }

    /// The next name after a collision fits as well, whatever it has to lose for that.
    @Test func alternativesFit() throws {
        var name = String(repeating: "é", count: DiscoveryLimits.instanceNameBytes / 2)
        for _ in 0..<12 {
            let next = InstanceName.alternative(to: name)
            #expect(next != name)
            try InstanceName.check(next)
            name = next
        }
    }

    @Test func waitingEvents() async {
        let output = DiscoveryOutput()
        for number in 0..<DiscoveryLimits.waitingEvents {
            guard output.emit(.status(DiscoveryStatus(backend: .avahi, state: .unavailable, error: "\(number)"))) else {
                Issue.record("event \(number) was dropped")
                return
            }
        }
        #expect(!output.emit(.status(DiscoveryStatus(backend: .avahi, state: .running))), "a reader that far behind has to begin anew")
        // What was taken is kept, in order.
        var events = output.events.makeAsyncIterator()
        #expect(await events.next() == .status(DiscoveryStatus(backend: .avahi, state: .unavailable, error: "0")))
        #expect(output.emit(.status(DiscoveryStatus(backend: .avahi, state: .running))))
    }
}
