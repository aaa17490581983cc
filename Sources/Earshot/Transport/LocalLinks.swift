package import NIOCore

/// The networks of this machine's interfaces. An address from discovery is dialled only if it is on one of them (EarshotWire.md).
package struct LocalLinks: Sendable {
    package struct Link: Sendable, Hashable {
        package let interface: String
        package let address: [UInt8]
        package let prefix: [UInt8]
    }

    package let links: [Link]

    package init(links: [Link]) {
        self.links = links
    }

    /// Returns the current networks from the kernel.
    package static func current() -> LocalLinks {
        guard let devices = try? System.enumerateDevices() else { return LocalLinks(links: []) }
        return LocalLinks(
            links: devices.compactMap { device in
                guard let address = device.address.flatMap(Self.bytes), let mask = device.netmask.flatMap(Self.bytes),
                    address.count == mask.count
                else { return nil }
                return Link(interface: device.name, address: address, prefix: mask)
            })
    }

    /// Returns whether an address from discovery may be dialled: it must be on one of the networks. Loopback is allowed only for records
    /// from loopback.
    package func permit(_ address: PeerAddress, fromLoopback: Bool) -> Bool {
        guard let target = address.socketAddress.flatMap(Self.bytes), !Self.isUnusable(target) else { return false }
        if Self.isLoopback(target) { return fromLoopback }
        if let zone = address.zone { return self.links.contains { $0.interface == zone } }
        return self.links.contains { link in
            link.address.count == target.count && !Self.isLoopback(link.address)
                && zip(zip(link.address, target), link.prefix).allSatisfy { pair, mask in pair.0 & mask == pair.1 & mask }
        }
    }

    /// Whether an address belongs to this machine.
    package func isOwn(_ address: PeerAddress) -> Bool {
        guard let target = address.socketAddress.flatMap(Self.bytes) else { return false }
        return Self.isLoopback(target) || self.links.contains { $0.address == target }
    }

    private static func isLoopback(_ bytes: [UInt8]) -> Bool {
        bytes.count == 4 ? bytes[0] == 127 : bytes.dropLast().allSatisfy { $0 == 0 } && bytes.last == 1
    }

    /// Whether an address is unspecified, multicast, broadcast or IPv4-mapped. No host can be dialled at such an address.
    private static func isUnusable(_ bytes: [UInt8]) -> Bool {
        if bytes.count == 4 { return bytes[0] == 0 || bytes[0] >= 224 }
        let isMapped = bytes[0..<10].allSatisfy { $0 == 0 } && bytes[10] == 0xFF && bytes[11] == 0xFF
        return bytes[0] == 0xFF || bytes.allSatisfy { $0 == 0 } || isMapped
    }

    /// Returns the address in network order, 4 or 16 bytes.
    package static func bytes(_ address: SocketAddress) -> [UInt8]? {
        // The offsets of the address in `struct sockaddr_in` and `sockaddr_in6` (ip(7), ipv6(7)).
        let range: Range<Int>
        switch address.protocol {
        case .inet: range = 4..<8
        case .inet6: range = 8..<24
        default: return nil
        }
        return address.withSockAddr { pointer, size in
            range.upperBound <= size ? Array(UnsafeRawBufferPointer(start: pointer, count: size)[range]) : nil
        }
    }
}
