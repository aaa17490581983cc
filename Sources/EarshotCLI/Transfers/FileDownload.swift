import EarshotClient
import EarshotSafety
import Glibc
import NIOCore

/// One received file or directory on its way from where the daemon has it to where a person wants it.
struct FileDownload: Sendable {
    let resource: ControlAPI.Resource
    let client: ControlClient

    /// Into the directory under its own name or a numbered one, safely on disk; the spool has it until it leaves that.
    func save(in directory: SafeDirectory) async throws -> SafeName {
        let name = try self.name()
        let isTree = self.resource.kind == .directory
        return try await isTree ? self.saveTree(in: directory, as: name) : self.saveFile(in: directory, as: name)
    }

    /// Under its own name or a numbered one; a signal meanwhile leaves nothing behind.
    private func saveFile(in directory: SafeDirectory, as name: SafeName) async throws -> SafeName {
        let file = try TemporaryFile(in: directory)
        return try await Interrupts.takingBack {
            // It has a name already, where the file system knows no unnamed files.
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

    /// To standard output, and to disk where that is a file. The daemon keeps it: a pipe that has taken all of it says nothing about the program
    /// at its other end.
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

    /// Where the bytes of a file come from.
    private enum Content {
        case daemon(ControlContent)
        /// Where the daemon has put the file, read with this user's own rights.
        case published(OpenFile)

        /// `nil` from a daemon that does not tell them.
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
        // Not blocking: whatever stands there now need not be the file any more.
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
        // A published file is the person's own, who may have changed it since.
        guard self.resource.publishedPath != nil || written == self.resource.size else {
            throw CommandFailure(
                .io, "\(self.resource.name.escapedForDisplay) came out \(written) bytes long instead of \(self.resource.size)",
                hint: "it is still with the daemon; try again")
        }
    }

    /// Has the daemon let go of what is here now; gives why it may have it still. That begins with `place`, escaped: what is here is not to be
    /// looked for, or fetched once more, because of it.
    func leaveSpool(_ place: String) async -> CommandFailure? {
        guard self.resource.publishedPath == nil else { return nil }
        do throws(ControlError) {
            try await self.client.dropContent(of: self.resource.id)
            return nil
        } catch .problem(let problem) where problem.code == .notFound {
            // Somebody has deleted it meanwhile.
            return nil
        } catch {
            let failure = CommandFailure(error)
            let name = self.resource.name.escapedForDisplay
            return CommandFailure(
                failure.status, "\(name) \(place), and may still be with the daemon: \(failure.message ?? "")", hint: failure.hint)
        }
    }
}
