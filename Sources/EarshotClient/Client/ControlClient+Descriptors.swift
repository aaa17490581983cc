import EarshotSafety
import Glibc
import NIOCore

/// Calls that pass an open descriptor over the daemon's socket (unix(7), `SCM_RIGHTS`).
extension ControlClient {
    /// `POST /v1/resources` with an open file, which the daemon reads with no other right than this. Answers when the receiver has the
    /// content; with `queue`, or for a group, when the daemon has a copy.
    ///
    /// `descriptor` is a regular file that is open for reading. Its position does not matter and does not change. It stays the caller's, and
    /// may be closed when this returns.
    ///
    /// If the connection to the peer is lost, the transfer resumes when the peer returns. If the task is cancelled, or this process ends,
    /// the transfer is cancelled. It moves at most `limit` bytes per second. `progress` is called with the transfer as it begins and moves.
    /// - Throws: `problem` with status 411 if the daemon's version does not take descriptors, and with `invalid-parameter` if the descriptor
    ///   did not arrive, because a relay forwards the socket.
    public func sendFile(
        _ descriptor: CInt, to recipient: ControlAPI.ResourceRecipient, name: String, digest: ControlAPI.Resource.Digest? = nil,
        limit: UInt64? = nil, queue: Bool = false, pin: String? = nil,
        progress: @escaping @Sendable (ControlAPI.Resource) -> Void = { _ in }
    ) async throws(ControlError) -> ControlAPI.ResourceList {
        let query = [
            recipient.query, ("name", name), ("digest", digest?.rawValue), ("limit", limit.map(String.init)),
            ("queue", queue ? "true" : nil), ("pin", pin),
        ]
        let path = ControlPath.path(["resources"], query: query)
        let socketPath = self.socketPath
        return try await Self.onThread { interruption throws(ControlError) in
            let connection = try interruption.watch(try StreamConnection(socketPath: socketPath))
            try connection.send("POST", path, upgrade: ControlAPI.descriptorProtocol)
            let answer = try connection.receiveHead()
            guard answer.status == 101 else { throw Self.problem(try connection.receiveAll(of: answer), status: answer.status) }
            connection.pass(descriptor)
            while true {
                let line = try Self.reply(try connection.receiveLine(), to: "POST \(path)") as ControlReply<ControlAPI.DescriptorLine>
                if let problem = line.value.problem { throw .problem(problem) }
                if let resources = line.value.resources { return ControlAPI.ResourceList(resources: resources) }
                if let resource = line.value.resource { progress(resource) }
            }
        }
    }

    /// `GET /v1/resources/{id}/content` as an open file: returns a descriptor that is open for reading only, of a received file's content.
    /// The caller closes it. It stays readable when the daemon drops the content.
    /// - Returns: `nil` if no descriptor came: for a directory, from an older daemon, or through a relay, such as a forwarded socket. Use
    ///   ``content(of:asTree:)`` then.
    public func openContent(of id: ResourceID) async throws(ControlError) -> CInt? {
        let path = ControlPath.path(["resources", id.description, "content"])
        let socketPath = self.socketPath
        return try await Self.onThread { interruption throws(ControlError) in
            let connection = try interruption.watch(try StreamConnection(socketPath: socketPath))
            try connection.send("GET", path, upgrade: ControlAPI.descriptorProtocol)
            let answer = try connection.receiveHead()
            if (200..<300).contains(answer.status) { return nil }
            guard answer.status == 101 else { throw Self.problem(try connection.receiveAll(of: answer), status: answer.status) }
            return try connection.receiveDescriptor()
        }
    }

    /// Writes a received file's content into an empty regular file that is open for writing, and returns the number of bytes. The kernel
    /// copies the content where the daemon passes a descriptor. Otherwise, the bytes come as from ``content(of:asTree:)``.
    ///
    /// `output` stays the caller's. It is not synced.
    /// - Throws: `output` if it cannot be written.
    @discardableResult
    public func content(of id: ResourceID, into output: CInt) async throws(ControlError) -> UInt64 {
        let file = OpenFile(descriptor: fcntl(output, F_DUPFD_CLOEXEC, 0), subject: "the output")
        do {
            if let descriptor = try await self.openContent(of: id) {
                let source = OpenFile(descriptor: descriptor, subject: id.description)
                return try await Self.onThread { _ in Result { () throws(FileError) in try file.copyContent(of: source) } }.get()
            }
            var written: UInt64 = 0
            for try await piece in try await self.content(of: id) {
                try file.write(Array(piece.readableBytesView), at: written)
                written += UInt64(piece.readableBytes)
            }
            return written
        } catch let error as FileError {
            throw .output(reason: error.reason, code: error.code)
        } catch {
            throw error as? ControlError ?? .cancelled
        }
    }
}
