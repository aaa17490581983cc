/// A way to refer to a peer: its id (``PeerID``), or a string that names it, such as a display name.
///
/// The full id is never ambiguous. The call that takes the reference says which strings it accepts.
public protocol PeerReference: Sendable, CustomStringConvertible {}

/// A way to refer to a group: its id (``GroupID``), or a string that names it: 8 or more of the id's first characters, or the group's name.
///
/// The full id is never ambiguous.
public protocol GroupReference: Sendable, CustomStringConvertible {}

extension PeerID: PeerReference {}
extension WireID: GroupReference where Kind == GroupKind {}
extension String: PeerReference, GroupReference {}
