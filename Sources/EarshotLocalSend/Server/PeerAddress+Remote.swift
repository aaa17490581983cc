import Earshot
import EarshotCore
import NIOCore

#if canImport(Glibc)
    import Glibc
#endif

extension PeerAddress {
    /// Creates the address of the other side of a socket. IPv4 in IPv6 becomes IPv4, and a link-local address keeps its interface.
    init?(remote: SocketAddress, port: UInt16? = nil) {
        guard let bytes = LocalLinks.bytes(remote), let port = port ?? remote.port.flatMap({ UInt16(exactly: $0) }), port > 0 else {
            return nil
        }
        if bytes.count == 16, bytes[..<10].allSatisfy({ $0 == 0 }), bytes[10] == 0xFF, bytes[11] == 0xFF {
            self.init(host: bytes[12...].map { "\($0)" }.joined(separator: "."), zone: nil, port: port)
            return
        }
        guard let host = remote.ipAddress else { return nil }
        self.init(host: host, interface: Self.interface(of: remote), port: port)
    }

    /// Returns the name of the interface in an IPv6 address; empty if there is none.
    private static func interface(of address: SocketAddress) -> String {
        // The offset of the interface's index in `struct sockaddr_in6` (ipv6(7)).
        let index: UInt32 = address.withSockAddr { pointer, size in
            guard size >= 28 else { return 0 }
            return UnsafeRawBufferPointer(start: pointer, count: size).loadUnaligned(fromByteOffset: 24, as: UInt32.self)
        }
        guard case .v6 = address, index != 0 else { return "" }
        var name = [CChar](repeating: 0, count: Int(IF_NAMESIZE))
        guard if_indextoname(index, &name) != nil else { return "" }
        return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
