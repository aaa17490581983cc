// The core's public types (`EarshotError`, `Trust`, the policies and decisions) are part of this library's API, so a program that imports
// the library sees them too. This also makes the `package` declarations visible to this package's targets.
@_exported public import EarshotCore

// Programs name peers with ids, display names and service types (`PeerID`, `DisplayName`, `ServiceType`).
@_exported public import EarshotWire

// The types for content of messages and files (`TypedMessage`, `Archive`) are part of this library and of the client.
@_exported public import EarshotCoding
