package import EarshotSafety
internal import EarshotWire

extension Spool {
    /// Opens an outgoing content to send it: on the spool's thread, which waits for the spool's disk anyway, and for no other one.
    ///
    /// Throws `invalid-source` where it is not there.
    func outgoingSource(_ id: ResourceID) throws(EarshotError) -> SourceFile { try SourceFile(path: self.outgoingPath(id)) }

    /// The attributes of an open content. Without its sender's word the time is that of its arrival.
    package func attributes(_ file: OpenFile) throws(EarshotError) -> FileAttributes {
        do {
            return try file.attributes()
        } catch {
            throw Self.error(error)
        }
    }
}
