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

    /// The next name after a collision fits too, even if it must be shortened for that.
    @Test func alternativeNamesFitTheLimit() throws {
        var name = String(repeating: "é", count: DiscoveryLimits.instanceNameBytes / 2)
        for _ in 0..<12 {
            let next = InstanceName.alternative(to: name)
            #expect(next != name)
            try InstanceName.check(next)
            name = next
        }
    }

    /// An unknown interface may be new, so the interfaces are read again sooner.
    @Test func interfacesAreReadAnew() {
        func interface(_ index: Int32) -> NetworkInterface {
            NetworkInterface(index: index, name: "eth\(index)", isLoopback: false, isUsable: true, addresses: [])
        }
        var (reads, there, isReadable) = (0, [Int32(1): interface(1)], true)
        withoutActuallyEscaping({ () -> [Int32: NetworkInterface]? in
            reads += 1
            return isReadable ? there : nil
        }) { read in
            var cache = InterfaceCache(read: read)
            #expect(cache.interface(1, now: .zero) != nil && cache.interface(1, now: .milliseconds(999)) != nil && reads == 1)
            #expect(cache.interface(1, now: .seconds(1)) != nil && reads == 2)
            there[2] = interface(2)
            #expect(cache.interface(2, now: .milliseconds(1_099)) == nil && reads == 2)
            #expect(cache.interface(2, now: .milliseconds(1_100)) != nil && reads == 3)
            isReadable = false
            #expect(cache.interface(2, now: .seconds(9)) != nil && reads == 4, "what was read before counts on")
        }
    }

    @Test func eventsAboveTheLimitAreDropped() async {
        let output = DiscoveryOutput()
        for number in 0..<DiscoveryLimits.waitingEvents {
            guard output.emit(.status(DiscoveryStatus(backend: .avahi, state: .unavailable, error: "\(number)"))) else {
                Issue.record("event \(number) was dropped")
                return
            }
        }
        #expect(!output.emit(.status(DiscoveryStatus(backend: .avahi, state: .running))), "a reader that far behind has to begin anew")
        // The accepted events are kept, in order.
        var events = output.events.makeAsyncIterator()
        #expect(await events.next() == .status(DiscoveryStatus(backend: .avahi, state: .unavailable, error: "0")))
        #expect(output.emit(.status(DiscoveryStatus(backend: .avahi, state: .running))))
    }
}
