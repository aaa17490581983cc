// Typed messages and archives stand in this library's own API (`ControlClient.messages(of:_:)`), so a program that imports it sees them too.
@_exported public import EarshotCoding
