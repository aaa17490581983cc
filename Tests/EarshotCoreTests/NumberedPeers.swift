import EarshotWire

/// Returns a fixed peer id for a number.
func peerID(_ number: UInt8) -> PeerID { PeerID(subjectPublicKeyInfo: [number]) }
