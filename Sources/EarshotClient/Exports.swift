// Typed messages and archives are part of this library's API (`ControlClient.messages(of:_:)`), so programs that import it see these
// modules too.
@_exported public import EarshotCoding

// Programs name peers and groups with ids (`PeerID`, `GroupID`) or names (`PeerReference`, `GroupReference`).
@_exported public import EarshotWire
