import EarshotCore
import EarshotWire

/// The reports of discovery, usually true.
extension World {
    func key(of peer: Int, interface: Int) -> Sighting.Key {
        Sighting.Key(instanceName: "machine \(peer)", interfaceIndex: Int32(interface % 3), overIPv6: interface % 3 == 2)
    }

    mutating func see(_ peer: Int, by machine: Int, interface: Int) {
        let address = Network.address(of: peer, interface: interface % 3)
        let key = self.key(of: peer, interface: interface)
        self.see(key, self.machines[peer].id, self.machines[peer].name, [address], by: machine)
    }

    /// Anyone may advertise anything.
    mutating func see(_ key: Sighting.Key, _ id: PeerID, _ name: String, _ addresses: [PeerAddress], by machine: Int) {
        let txt = [("v", "1"), ("id", id.description), ("name", name)].map { TXTPair(key: $0.0, value: Array($0.1.utf8)) }
        let sighting = Sighting(
            key: key, interfaceName: "eth0", isLoopback: false, addresses: addresses.map(\.host), port: 47110, txt: txt)
        self.hand(.discovery(.found(.avahi, SeenAddresses(sighting: sighting, addresses: addresses))), to: machine)
    }
}
