import EarshotWire
import Glibc
import Testing

@testable import Earshot

/// The number of a name's addresses that are used.
@Suite struct HostLookupLimitTests {
    /// Calls `body` with a resolver's answer that has these addresses.
    private func withAnswer(_ hosts: [String], _ body: (UnsafeMutablePointer<addrinfo>?) throws -> Void) throws {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_NUMERICHOST
        var items: [UnsafeMutablePointer<addrinfo>] = []
        for host in hosts {
            var item: UnsafeMutablePointer<addrinfo>?
            try #require(getaddrinfo(host, nil, &hints, &item) == 0)
            items.append(try #require(item))
        }
        for (one, next) in zip(items, items.dropFirst()) { one.pointee.ai_next = next }
        defer {
            for item in items {
                item.pointee.ai_next = nil
                freeaddrinfo(item)
            }
        }
        try body(items.first)
    }

    @Test func addressesPerHost() throws {
        let limit = EarshotLimits.addressesPerHost
        let hosts = (1...limit + 1).map { "192.0.2.\($0)" }
        for count in [1, limit - 1, limit, limit + 1] {
            try self.withAnswer(Array(hosts.prefix(count))) { list in
                #expect(HostLookup.addresses(list, port: 47110).map(\.host) == Array(hosts.prefix(min(count, limit))), "the first ones")
            }
        }
        // A repeated address counts once.
        try self.withAnswer([hosts[0]] + hosts) { list in
            #expect(HostLookup.addresses(list, port: 47110).map(\.host) == Array(hosts.prefix(limit)))
        }
    }
}
