package import EarshotSafety
internal import EarshotWire

extension Spool {
    /// Opens an outgoing content for sending. Runs on the spool's thread, which only ever waits for the spool's disk.
    ///
    /// - Throws: `invalid-source` if the content is missing.
    func outgoingSource(_ id: ResourceID) throws(EarshotError) -> SourceFile { try SourceFile(path: self.outgoingPath(id)) }

    /// Returns the attributes of an open content. If its sender sent no time, the time is that of its arrival.
    package func attributes(_ file: OpenFile) throws(EarshotError) -> FileAttributes {
        do {
            return try file.attributes()
        } catch {
            throw Self.error(error)
        }
    }
}
