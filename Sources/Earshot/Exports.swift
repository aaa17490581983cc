// The core's public types (`EarshotError`, `Trust`, the policies and decisions) stand in this library's own API, so a program that imports
// the library sees them too. What is `package` there is for this package's targets, by the same way.
@_exported public import EarshotCore

// Ids, names and service types (`PeerID`, `DisplayName`, `ServiceType`) are what a program calls peers by.
@_exported public import EarshotWire

// What stands in messages and files by its type (`TypedMessage`, `Archive`) is this library's as much as the client's.
@_exported public import EarshotCoding
