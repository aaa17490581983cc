import Earshot
import Foundation
import Synchronization

@testable import MultipeerConnectivity

/// The network's announcements within this process: each browser of a type sees the advertisers of that type on loopback.
final class Air: Sendable {
    static let shared = Air()

    /// Makes the module discover through the air. All tests of the process share it, and are separated by their service types.
    static let isUsed: Bool = {
        EngineOwner.makeDiscovery.withLock { $0 = { AirDiscovery(Air.shared) } }
        return true
    }()

    fileprivate struct State {
        var advertised: [ObjectIdentifier: Advertisement] = [:]
        var browsing: [ObjectIdentifier: (type: String, browser: AirDiscovery)] = [:]
    }

    private let state = Mutex(State())

    fileprivate func begin(_ discovery: AirDiscovery, _ advertisement: Advertisement?, _ type: String?) {
        self.state.withLock { state in
            if let advertisement {
                state.advertised[ObjectIdentifier(discovery)] = advertisement
                for (type, browser) in state.browsing.values where type == advertisement.serviceType {
                    browser.tell(.found(.embedded, Self.sighting(advertisement)))
                }
            }
            if let type {
                state.browsing[ObjectIdentifier(discovery)] = (type, discovery)
                for advertisement in state.advertised.values where advertisement.serviceType == type {
                    discovery.tell(.found(.embedded, Self.sighting(advertisement)))
                }
            }
        }
    }

    fileprivate func end(_ discovery: AirDiscovery) {
        self.state.withLock { state in
            state.browsing[ObjectIdentifier(discovery)] = nil
            guard let gone = state.advertised.removeValue(forKey: ObjectIdentifier(discovery)) else { return }
            for (type, browser) in state.browsing.values where type == gone.serviceType {
                browser.tell(.lost(.embedded, Self.sighting(gone).key))
            }
        }
    }

    private static func sighting(_ advertisement: Advertisement) -> Sighting {
        // Names are the instances' own: several peers may be called the same.
        Sighting(
            key: Sighting.Key(instanceName: "\(advertisement.instanceName) \(advertisement.port)", interfaceIndex: 1, overIPv6: false),
            interfaceName: "lo", isLoopback: true, addresses: ["127.0.0.1"], port: advertisement.port, txt: advertisement.txt)
    }
}

/// One advertiser or browser in the air.
final class AirDiscovery: PeerDiscovery {
    let events: AsyncStream<DiscoveryEvent>
    private let output: AsyncStream<DiscoveryEvent>.Continuation
    private let air: Air
    /// The service type that it browses instead of the node's own.
    private let type: String?

    init(_ air: Air, browsing type: String? = nil) {
        self.air = air
        self.type = type
        (self.events, self.output) = AsyncStream.makeStream()
    }

    func tell(_ event: DiscoveryEvent) { self.output.yield(event) }

    func run(advertising advertisement: Advertisement?, browsing serviceType: String?) async {
        self.air.begin(self, advertisement, self.type ?? serviceType)
        let never = AsyncStream<Never> { _ in }
        for await _ in never {}
        self.air.end(self)
        self.output.finish()
    }
}
