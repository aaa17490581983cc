import Dispatch
import EarshotWaiting
import EarshotWire
import Glibc
import Synchronization

/// Resolves the hosts of configured peers to addresses, outside the event loops and the cooperative pool: getaddrinfo(3) blocks for half a
/// minute if a name server does not answer.
///
/// There is at most one lookup per host at a time. Other callers with the same question share its answer, so that a dead name server does
/// not accumulate threads.
package final class HostLookup: Sendable {
    /// Performs one lookup, on a thread that it may block.
    package typealias Query = @Sendable (ConfiguredPeer) -> Result<[PeerAddress], EarshotError>

    private typealias Answer = OneShot<Result<[PeerAddress], EarshotError>>

    private struct State {
        var waiting: [ConfiguredPeer: Answer] = [:]
        var isStopped = false
    }

    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "earshot.lookup", attributes: .concurrent)
    private let query: Query

    package init(query: @escaping Query = { HostLookup.ask($0) }) {
        self.query = query
    }

    /// Returns the peer's addresses, best first.
    /// - Throws: `unavailable` if the name does not resolve, or after a call of `stop`.
    package func addresses(of peer: ConfiguredPeer) async throws(EarshotError) -> [PeerAddress] {
        let answer = Answer()
        let shared = self.state.withLock { state -> Answer? in
            guard !state.isStopped else { return nil }
            let shared = state.waiting[peer] ?? answer
            state.waiting[peer] = shared
            return shared
        }
        guard let shared else { throw .stopping }
        if shared === answer {
            self.queue.async {
                let result = self.query(peer)
                self.state.withLock { $0.waiting[peer] = nil }
                answer.settle(result)
            }
        }
        return try await shared.value().get()
    }

    /// Answers all callers immediately, because a stop must not wait for a name server.
    package func stop() {
        let answers = self.state.withLock { state in
            state.isStopped = true
            defer { state.waiting = [:] }
            return Array(state.waiting.values)
        }
        for answer in answers { answer.settle(.failure(.stopping)) }
    }

    /// Returns the answer of the system's resolver. A numeric host needs no name server.
    private static func ask(_ peer: ConfiguredPeer) -> Result<[PeerAddress], EarshotError> {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(peer.host, nil, &hints, &list)
        defer { if let list { freeaddrinfo(list) } }
        guard code == 0 else {
            return .failure(EarshotError(.unavailable, "the name \(peer.host) does not resolve: \(String(cString: gai_strerror(code)))"))
        }
        return .success(self.addresses(list, port: peer.port))
    }

    /// Returns the first addresses of a resolver's answer, without duplicates.
    static func addresses(_ list: UnsafeMutablePointer<addrinfo>?, port: UInt16) -> [PeerAddress] {
        var addresses: [PeerAddress] = []
        var item = list
        while let current = item?.pointee, addresses.count < EarshotLimits.addressesPerHost {
            item = current.ai_next
            guard let address = self.address(current, port: port), !addresses.contains(address) else { continue }
            addresses.append(address)
        }
        return addresses
    }

    private static func address(_ info: addrinfo, port: UInt16) -> PeerAddress? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(NI_MAXHOST)) { buffer in
            guard let start = buffer.baseAddress,
                getnameinfo(info.ai_addr, info.ai_addrlen, start, socklen_t(buffer.count), nil, 0, NI_NUMERICHOST) == 0
            else { return nil }
            // The resolver returns a link-local address with its zone: `fe80::1%eth0`.
            let parts = String(cString: start).split(separator: "%", maxSplits: 1)
            return parts.first.flatMap { PeerAddress(host: String($0), interface: String(parts.dropFirst().first ?? ""), port: port) }
        }
    }
}
