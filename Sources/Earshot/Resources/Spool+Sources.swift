package import EarshotSafety
internal import EarshotWire

extension Spool {
    /// Opens an outgoing content for sending. Runs on the spool's thread, which only ever waits for the spool's disk.
    ///
    /// - Throws: `invalid-source` if the content is missing.
    func outgoingSource(_ id: ResourceID) throws(EarshotError) -> SourceFile { try SourceFile(path: self.outgoingPath(id)) }

    /// Copies the file of a source as the whole content of a running transfer, in the kernel if possible, on a thread of its own: a read of the file may
    /// wait forever for a server that is gone.
    /// - Throws: `no-space` or `storage` if a disk fails; `source-changed`; `cancelled`; `unavailable` without a thread.
    func copy(_ source: any ResourceSource, into id: ResourceID) async throws(EarshotError) {
        let content = try self.incoming(id)
        do {
            try await ThreadExecutor.blocking("earshot-copy") {
                if let extent = try source.extent(at: 0, count: source.size) { try content.copy(extent.file) }
                try source.verify()
            }
        } catch {
            throw Self.error(error)
        }
    }

    /// Returns the attributes of an open content. If its sender sent no time, the time is that of its arrival.
    package func attributes(_ file: OpenFile) throws(EarshotError) -> FileAttributes {
        do {
            return try file.attributes()
        } catch {
            throw Self.error(error)
        }
    }
}
