import CAvahi
import Glibc

/// A network interface of the machine, as getifaddrs(3) reports it.
struct NetworkInterface: Hashable {
    let index: Int32
    let name: String
    let isLoopback: Bool
    /// Whether discovery may publish on it: it is up, and either loopback or able to multicast.
    let isUsable: Bool
    let addresses: [LocalAddress]

    /// An address, as bytes in network order: 4 for IPv4, 16 for IPv6.
    struct LocalAddress: Hashable {
        let interfaceIndex: Int32
        let bytes: [UInt8]
    }

    /// Returns all present interfaces, by index; `nil` if the kernel does not tell, for example because the process has run out of
    /// descriptors.
    static func all() -> [Int32: NetworkInterface]? {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&list) == 0 else { return nil }
        defer { freeifaddrs(list) }
        var interfaces: [Int32: NetworkInterface] = [:]
        var item = list
        while let current = item?.pointee {
            item = current.ifa_next
            guard let name = current.ifa_name else { continue }
            let index = Int32(clamping: if_nametoindex(name))
            guard index > 0 else {
                // The interface is already gone. After any other error, such as a lack of descriptors, nothing is known.
                guard [ENODEV, ENXIO].contains(errno) else { return nil }
                continue
            }
            let flags = Int(current.ifa_flags)
            let isLoopback = flags & IFF_LOOPBACK != 0
            var addresses = interfaces[index]?.addresses ?? []
            if let bytes = self.bytes(of: current.ifa_addr) {
                addresses.append(LocalAddress(interfaceIndex: index, bytes: bytes))
            }
            interfaces[index] = NetworkInterface(
                index: index, name: String(cString: name), isLoopback: isLoopback,
                isUsable: flags & IFF_UP != 0 && (isLoopback || flags & IFF_MULTICAST != 0),
                addresses: addresses)
        }
        return interfaces
    }

    private static func bytes(of address: UnsafeMutablePointer<sockaddr>?) -> [UInt8]? {
        guard let address else { return nil }
        switch CInt(address.pointee.sa_family) {
        case AF_INET:
            return address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { pointer in
                withUnsafeBytes(of: pointer.pointee.sin_addr) { Array($0) }
            }
        case AF_INET6:
            return address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { pointer in
                withUnsafeBytes(of: pointer.pointee.sin6_addr) { Array($0) }
            }
        default:
            return nil
        }
    }
}

/// A cache of interfaces for sightings. They are read again at most once a second, or at most every 100 ms to find an unknown interface,
/// which may be new.
struct InterfaceCache {
    private var interfaces: [Int32: NetworkInterface] = [:]
    private var readAt: Duration?
    /// Whether the last attempt to read them succeeded.
    private(set) var isCurrent = false
    private let read: () -> [Int32: NetworkInterface]?

    /// Creates a cache. `read` returns all interfaces by their indexes, or `nil` if they are not known; the earlier ones are then kept.
    init(read: @escaping () -> [Int32: NetworkInterface]? = NetworkInterface.all) { self.read = read }

    /// Returns the interface with this index; `nil` if it is gone.
    mutating func interface(_ index: Int32, now: Duration) -> NetworkInterface? {
        let age = self.readAt.map { now - $0 } ?? .seconds(1)
        if age >= (self.interfaces[index] == nil ? .milliseconds(100) : .seconds(1)) {
            let read = self.read()
            self.isCurrent = read != nil
            self.interfaces = read ?? self.interfaces
            self.readAt = now
        }
        return self.interfaces[index]
    }
}
