import Glibc

extension DoctorFacts.Interface {
    /// The machine's interfaces, as getifaddrs(3) shows them.
    static func gather() -> [DoctorFacts.Interface] {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&list) == 0 else { return [] }
        defer { freeifaddrs(list) }
        var interfaces: [DoctorFacts.Interface] = []
        var item = list
        while let current = item?.pointee {
            item = current.ifa_next
            guard let pointer = current.ifa_name else { continue }
            let (name, flags) = (String(cString: pointer), Int(current.ifa_flags))
            if !interfaces.contains(where: { $0.name == name }) {
                interfaces.append(
                    DoctorFacts.Interface(
                        name: name, isUp: flags & IFF_UP != 0 && flags & IFF_RUNNING != 0, isLoopback: flags & IFF_LOOPBACK != 0,
                        hasMulticast: flags & IFF_MULTICAST != 0, isPointToPoint: flags & IFF_POINTOPOINT != 0, addresses: []))
            }
            guard let text = Self.text(current.ifa_addr), let index = interfaces.firstIndex(where: { $0.name == name }) else { continue }
            interfaces[index].addresses.append(text)
        }
        return interfaces
    }

    /// An IPv4 or IPv6 address in its usual form; `nil` for other families.
    private static func text(_ address: UnsafeMutablePointer<sockaddr>?) -> String? {
        guard let address else { return nil }
        let size: Int
        switch CInt(address.pointee.sa_family) {
        case AF_INET: size = MemoryLayout<sockaddr_in>.size
        case AF_INET6: size = MemoryLayout<sockaddr_in6>.size
        default: return nil
        }
        var host = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        guard getnameinfo(address, socklen_t(size), &host, socklen_t(host.count), nil, 0, NI_NUMERICHOST) == 0 else { return nil }
        return String(decoding: host.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
