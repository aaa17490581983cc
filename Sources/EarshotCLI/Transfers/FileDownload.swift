import EarshotClient
import EarshotSafety
import Glibc
import NIOCore

/// The transfer of one received file or directory from the daemon to the user's place.
struct FileDownload: Sendable {
    let resource: ControlAPI.Resource
    let client: ControlClient

    /// Saves into the directory, under the resource's name or a numbered one, and syncs to disk. The spool keeps its copy until
    /// `leaveSpool(_:)`.
    func save(in directory: SafeDirectory) async throws -> SafeName {
        let name = try self.name()
        let isTree = self.resource.kind == .directory
        return try await isTree ? self.saveTree(in: directory, as: name) : self.saveFile(in: directory, as: name)
    }

    /// Saves a file under its own name or a numbered one. If a signal arrives meanwhile, nothing is left behind.
    private func saveFile(in directory: SafeDirectory, as name: SafeName) async throws -> SafeName {
        let file = try TemporaryFile(in: directory)
        return try await Interrupts.takingBack {
            // On file systems without unnamed files, the temporary file has a name.
            file.drop()
        } _: {
            var written: UInt64 = 0
            let content = try await self.content()
            let attributes = try content.attributes()
            try await content.forEach { piece in
                let offset = written
                try piece.withUnsafeReadableBytes { (bytes) throws(FileError) in
                    try file.file.write(bytes, at: offset, leavingHoles: attributes?.hasHoles == true)
                }
                written += UInt64(piece.readableBytes)
                ProgressLine.draw(name: self.resource.name, transferred: written, size: self.resource.size, rate: 0)
            }
            ProgressLine.leave()
            try self.check(written)
            if let attributes { file.file.apply(attributes) }
            guard let published = try file.publish(as: name, onConflict: .rename) else {
                throw CommandFailure(.cannotCreate, "cannot create \(directory.subject(name).escapedForDisplay)")
            }
            return published
        }
    }

    /// Writes to standard output, and syncs if that is a file. The daemon keeps its copy: a pipe that accepted all bytes does not show that
    /// the program at its other end has read them.
    func print() async throws {
        if self.resource.kind == .directory {
            try await self.printTree()
        } else {
            try await self.printFile()
        }
        try Standard.sync()
    }

    private func printFile() async throws {
        var written: UInt64 = 0
        try await self.content().forEach { piece in
            try Standard.write(Array(piece.readableBytesView))
            written += UInt64(piece.readableBytes)
        }
        try self.check(written)
    }

    private func name() throws -> SafeName {
        do {
            return try SafeName(self.resource.name)
        } catch {
            throw CommandFailure(
                .data, error.description,
                hint: "or choose the name yourself: earshot file get \(Words.short(self.resource.id)) -o - > FILE"
            )
        }
    }

    /// The source of a file's bytes.
    private enum Content {
        case daemon(ControlContent)
        /// The file that the daemon has published, opened with this user's permissions.
        case published(OpenFile)

        /// The file's attributes; `nil` if the daemon does not report them.
        func attributes() throws -> FileAttributes? {
            switch self {
            case .daemon(let content): content.attributes?.onDisk
            case .published(let file): try file.attributes()
            }
        }

        func forEach(_ body: (ByteBuffer) async throws -> Void) async throws {
            switch self {
            case .daemon(let content): for try await piece in content { try await body(piece) }
            case .published(let file):
                var offset: UInt64 = 0
                while case let bytes = try file.bytes(at: offset, count: LocalSource.pieceSize), !bytes.isEmpty {
                    offset += UInt64(bytes.count)
                    try await body(ByteBuffer(bytes: bytes))
                }
            }
        }
    }

    private func content() async throws -> Content {
        guard let path = self.resource.publishedPath else { return .daemon(try await self.client.content(of: self.resource.id)) }
        return .published(try Self.open(path))
    }

    private static func open(_ path: String) throws -> OpenFile {
        // Non-blocking: another kind of file may have replaced the published one.
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw CommandFailure(.noInput, FileError("open", path).description, hint: "the daemon put it there when it arrived")
        }
        let file = OpenFile(descriptor: descriptor, subject: path)
        guard try file.status().kind == .regular else {
            throw CommandFailure(.noInput, "\(path.escapedForDisplay) is no longer a file")
        }
        return file
    }

    func check(_ written: UInt64) throws {
        // The user owns a published file and may have changed it.
        guard self.resource.publishedPath != nil || written == self.resource.size else {
            throw CommandFailure(
                .io, "\(self.resource.name.escapedForDisplay) has \(written) bytes instead of \(self.resource.size)",
                hint: "the daemon still has it; try again")
        }
    }

    /// Asks the daemon to drop its copy. Returns a failure if the daemon may still have the copy; its message begins with `place`, escaped,
    /// which tells the user that the local copy is complete.
    func leaveSpool(_ place: String) async -> CommandFailure? {
        guard self.resource.publishedPath == nil else { return nil }
        do throws(ControlError) {
            try await self.client.dropContent(of: self.resource.id)
            return nil
        } catch .problem(let problem) where problem.code == .notFound {
            // Another caller deleted it meanwhile.
            return nil
        } catch {
            let failure = CommandFailure(error)
            let name = self.resource.name.escapedForDisplay
            return CommandFailure(
                failure.status, "\(name) \(place), and may still be with the daemon: \(failure.message ?? "")", hint: failure.hint)
        }
    }
}
