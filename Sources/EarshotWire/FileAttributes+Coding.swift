package import EarshotSafety

/// The attributes of a file, named here for the core too, which needs nothing else of EarshotSafety's file handling.
package typealias FileAttributes = EarshotSafety.FileAttributes

/// The encoding of a file's attributes after the name in an offer.
extension FileAttributes {
    private static let executable: UInt8 = 1
    private static let holes: UInt8 = 2

    /// Creates the attributes of a file of which only the time is known, in milliseconds since 1970.
    package init(modifiedAt milliseconds: Int64) {
        let (seconds, rest) = milliseconds.quotientAndRemainder(dividingBy: 1000)
        self.init(seconds: rest < 0 ? seconds - 1 : seconds, nanoseconds: UInt32(rest < 0 ? rest + 1000 : rest) * 1_000_000)
    }

    init(from reader: inout PayloadReader) throws(WireError) {
        let flags = try reader.integer("flags", in: 0...(Self.executable | Self.holes))
        self.init(
            isExecutable: flags & Self.executable != 0, hasHoles: flags & Self.holes != 0, seconds: try reader.integer("seconds"),
            nanoseconds: try reader.integer("nanoseconds", in: 0...Self.nanosecondsLimit))
    }

    func encode(into writer: inout PayloadWriter, of kind: ResourceOffer.Kind) throws(WireError) {
        guard kind == .file else { throw writer.malformed("end") }
        writer.integer((self.isExecutable ? Self.executable : 0) | (self.hasHoles ? Self.holes : 0))
        writer.integer(self.seconds)
        writer.integer(self.nanoseconds)
    }
}
