import Testing

@testable import EarshotDiscovery

/// The selection of the machine's addresses that the embedded responder publishes.
@Suite struct PublishedAddressTests {
    private func interface(_ index: Int32, _ count: Int, isUsable: Bool = true) -> NetworkInterface {
        NetworkInterface(
            index: index, name: "eth\(index)", isLoopback: false, isUsable: isUsable,
            addresses: (0..<count).map {
                NetworkInterface.LocalAddress(interfaceIndex: index, bytes: [10, UInt8(index), UInt8($0 >> 8), UInt8($0 & 0xFF)])
            })
    }

    private func table(_ interfaces: NetworkInterface...) -> [Int32: NetworkInterface] {
        Dictionary(uniqueKeysWithValues: interfaces.map { ($0.index, $0) })
    }

    @Test func publishedAddressesStopAtTheLimit() {
        let limit = DiscoveryLimits.localAddresses
        let (first, second) = (self.interface(1, limit - 1), self.interface(2, 2))
        #expect(AvahiServerLink.published(of: self.table(first)).count == limit - 1)
        #expect(AvahiServerLink.published(of: self.table(first, self.interface(2, 1))).count == limit)
        // Beyond the limit, the choice is always the same. A changing choice would be announced and withdrawn each time.
        for _ in 0..<100 {
            #expect(AvahiServerLink.published(of: self.table(second, first)) == Set(first.addresses + second.addresses.prefix(1)))
        }
    }

    @Test func whatIsDownIsNotPublished() {
        #expect(AvahiServerLink.published(of: self.table(self.interface(1, 3, isUsable: false))).isEmpty)
    }
}
