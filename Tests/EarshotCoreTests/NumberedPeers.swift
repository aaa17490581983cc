import EarshotWire

/// A peer id that is the same for the same number.
func peerID(_ number: UInt8) -> PeerID { PeerID(subjectPublicKeyInfo: [number]) }
