import EarshotClient
import EarshotSafety
import Glibc
import NIOCore

/// The transfer of one received file or directory from the daemon to the user's place.
struct FileDownload: Sendable {
    let resource: ControlAPI.Resource
    let client: ControlClient

    /// Returns the directory of the file below the user's: the folder that the sender named. Creates missing directories.
    func place(in directory: SafeDirectory) throws -> SafeDirectory {
        guard let folder = self.resource.folder else { return directory }
        return try folder.split(separator: "/", omittingEmptySubsequences: false).reduce(directory) { place, part in
            try place.subdirectory(self.checked(String(part)), create: 0o777)
        }
    }

    /// Returns the path of a saved file for the user, without the name of the working directory.
    func shown(_ name: SafeName, in place: SafeDirectory, below directory: SafeDirectory) -> String {
        let path = place.subject(name)
        return directory.path == "." && path.hasPrefix("./") ? String(path.dropFirst(2)) : path
    }

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
            let content = try await self.content()
            if case .file(let source) = content, let linked = try self.link(source, in: directory, as: name, like: file) { return linked }
            let attributes = try content.attributes()
            let written: UInt64
            switch content {
            case .file(let source): written = try file.file.copyContent(of: source, progress: self.draw)
            case .daemon(let content): written = try await self.write(content, to: file.file, leavingHoles: attributes?.hasHoles == true)
            }
            ProgressLine.leave()
            try self.check(written)
            if let attributes { file.file.apply(attributes) }
            return try self.publish(file, as: name)
        }
    }

    /// Gives the daemon's file a second name, if it is this user's own and lies on the directory's file system. The permissions are those of
    /// the new file `example`. Returns `nil` if the content has to be copied.
    private func link(
        _ source: OpenFile, in directory: SafeDirectory, as name: SafeName, like example: TemporaryFile
    ) throws -> SafeName? {
        let (status, wanted) = (try source.status(), try example.file.status())
        // A file with two names was fetched before, and its user may change it.
        guard self.resource.publishedPath == nil, status.links == 1, status.owner == geteuid(), status.device == wanted.device else {
            return nil
        }
        try self.check(status.size)
        let attributes = try source.attributes()
        do throws(FileError) {
            try source.setMode(wanted.mode)
            source.apply(attributes)
            return try self.publish(TemporaryFile(in: directory, linking: source), as: name)
        } catch {
            // ENOENT: the daemon has dropped the content meanwhile, or there is no /proc.
            guard TemporaryFile.linkFailures.contains(error.code) || error.code == ENOENT else { throw error }
            return nil
        }
    }

    private func publish(_ file: TemporaryFile, as name: SafeName) throws(FileError) -> SafeName {
        guard let published = try file.publish(as: name, onConflict: .rename) else {
            throw FileError("create", file.directory.subject(name), code: EEXIST)
        }
        return published
    }

    /// Writes the daemon's bytes. Returns their number.
    private func write(_ content: ControlContent, to file: OpenFile, leavingHoles: Bool) async throws -> UInt64 {
        var written: UInt64 = 0
        for try await piece in content {
            let offset = written
            try piece.withUnsafeReadableBytes { (bytes) throws(FileError) in
                try file.write(bytes, at: offset, leavingHoles: leavingHoles)
            }
            written += UInt64(piece.readableBytes)
            self.draw(written)
        }
        return written
    }

    private func draw(_ written: UInt64) {
        ProgressLine.draw(name: self.resource.name, transferred: written, size: self.resource.size, rate: 0)
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

    private func name() throws -> SafeName { try self.checked(self.resource.name) }

    private func checked(_ name: String) throws -> SafeName {
        do {
            return try SafeName(name)
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
        /// The daemon's file, or the file that it has published, opened with this user's permissions.
        case file(OpenFile)

        /// The file's attributes; `nil` if the daemon does not report them.
        func attributes() throws -> FileAttributes? {
            switch self {
            case .daemon(let content): content.attributes?.onDisk
            case .file(let file): try file.attributes()
            }
        }

        func forEach(_ body: (ByteBuffer) async throws -> Void) async throws {
            switch self {
            case .daemon(let content): for try await piece in content { try await body(piece) }
            case .file(let file):
                var offset: UInt64 = 0
                while case let bytes = try file.bytes(at: offset, count: LocalSource.pieceSize), !bytes.isEmpty {
                    offset += UInt64(bytes.count)
                    try await body(ByteBuffer(bytes: bytes))
                }
            }
        }
    }

    private func content() async throws -> Content {
        if let path = self.resource.publishedPath { return .file(try Self.open(path)) }
        if let descriptor = try await self.client.openContent(of: self.resource.id) {
            return .file(OpenFile(descriptor: descriptor, subject: self.resource.name))
        }
        return .daemon(try await self.client.content(of: self.resource.id))
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
        do throws(ControlError) {
            try await self.drop()
            return nil
        } catch {
            let failure = CommandFailure(error)
            let name = self.resource.name.escapedForDisplay
            return CommandFailure(
                failure.status, "\(name) \(place), and may still be with the daemon: \(failure.message ?? "")", hint: failure.hint)
        }
    }

    /// Asks the daemon to drop its copy, if it has one.
    func drop() async throws(ControlError) {
        guard self.resource.publishedPath == nil else { return }
        do throws(ControlError) {
            try await self.client.dropContent(of: self.resource.id)
        } catch .problem(let problem) where problem.code == .notFound {
            // Another caller deleted it meanwhile.
        }
    }
}
