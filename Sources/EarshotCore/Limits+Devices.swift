/// The limits on LocalSend devices that are shared with the transport.
extension EarshotLimits {
    /// The bytes of a device's alias. A longer one is cut, because a name in Earshot is one DNS label.
    package static let deviceAliasLength = 63
    /// The number of files in one offer of a device. A directory arrives as one file for each of its files.
    package static let deviceOfferFiles = 5_000
}
