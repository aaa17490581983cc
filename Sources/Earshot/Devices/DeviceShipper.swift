import EarshotCore
import EarshotSafety
import EarshotTree
import EarshotWire
import NIOCore
import Synchronization

/// One attempt to send a message or a resource to a LocalSend device: offers its files, and uploads those that are wanted, one after the
/// other.
struct DeviceShipper: Sendable {
    let devices: any DeviceTransport
    let target: DeviceTarget
    let name: String
    let pin: String?
    let pacer: TransferPacer
    let report: @Sendable (ShipmentReport) -> Void

    func ship(_ files: [ShippedFile]) async {
        // The transport reports only that a body has failed.
        let sourceError = SourceError()
        do throws(DeviceFailure) {
            let answer = try await self.devices.offer(files.map(\.file), to: self.target, name: self.name, pin: self.pin)
            guard case .upload(let session, let tokens) = answer else { return self.report(.delivered) }
            self.report(.accepted(session: session))
            let tokenOf = Dictionary(tokens.map { ($0.file, $0.token) }) { first, _ in first }
            for file in files {
                guard let token = tokenOf[file.file.id] else {
                    try await self.skip(file, sourceError)
                    continue
                }
                try await self.upload(file, DeviceUpload(session: session, file: file.file.id, token: token), sourceError)
            }
            self.report(.delivered)
        } catch {
            self.report(sourceError.value.map { .sourceFailed($0) } ?? .failed(error))
        }
    }

    /// Passes over a file that the device does not want, because a body is read from its first byte to its last.
    private func skip(_ file: ShippedFile, _ sourceError: SourceError) async throws(DeviceFailure) {
        guard case .part(let content, let start, let runs) = file.content, let body = content as? BodySource else { return }
        do throws(EarshotError) {
            try await body.skip(to: start + (runs.map { $0.reduce(0) { $0 + $1.length } } ?? file.file.size))
        } catch {
            sourceError.set(error)
            throw .lost("\(error)")
        }
    }

    /// Uploads a file. After a digest mismatch, the file is uploaded again.
    private func upload(_ file: ShippedFile, _ upload: DeviceUpload, _ sourceError: SourceError) async throws(DeviceFailure) {
        let mismatch = DeviceFailure.refused(status: DeviceRefusal.digestMismatch.rawValue)
        for attempt in 1...EarshotLimits.deviceUploadAttempts {
            do throws(DeviceFailure) {
                let body = ShippedBody(file: file, pacer: self.pacer, sourceError: sourceError, report: self.report)
                return try await self.devices.upload(upload, size: file.file.size, to: self.target, body: body)
            } catch {
                guard error == mismatch, attempt < EarshotLimits.deviceUploadAttempts else { throw error }
            }
        }
    }
}

/// A file for a LocalSend device, with its content.
struct ShippedFile: Sendable {
    /// The place of the file's bytes.
    enum Content: Sendable {
        case bytes(ByteBuffer)
        /// The file begins at this offset of the content. A sparse file has its runs of data there, one after the other.
        case part(of: any OutgoingContent, from: UInt64, runs: [TreeEntry.Extent]?)
    }

    let file: DeviceFile
    let content: Content

    /// Creates the file of a message: a text, if it is one, or else its bytes.
    init(_ id: MessageID, contentType: String, body: ByteBuffer) {
        let kind = contentType.prefix { $0 != ";" }.lowercased()
        let text = kind.hasPrefix("text/") ? String(validating: body.readableBytesView, as: UTF8.self) : nil
        self.file = DeviceFile(
            id: id.description, name: text == nil ? id.description : "\(id).txt", size: UInt64(body.readableBytes),
            contentType: String(kind),
            preview: text)
        self.content = .bytes(body)
    }

    private init(_ file: DeviceFile, _ content: Content) {
        self.file = file
        self.content = content
    }

    /// Returns the files of a resource: the file itself, or the files of a directory, each with its path below it.
    /// - Throws: `too-large` for more files than a device accepts, `invalid-source` for none, `name-rejected` for a name that is not UTF-8;
    ///   as ``OutgoingContent/treeManifest()``.
    static func files(of row: Resource, _ content: any OutgoingContent) async throws(EarshotError) -> [Self] {
        guard row.kind == .directory else {
            let file = DeviceFile(
                id: row.id.description, name: row.name, size: content.source?.size ?? row.size, contentType: MediaType.guess(row.name),
                modified: content.source?.attributes.map { WallTime(seconds: $0.seconds, nanoseconds: $0.nanoseconds) })
            return [Self(file, .part(of: content, from: 0, runs: nil))]
        }
        let tree = try await content.treeManifest()
        var files: [Self] = []
        for index in 0..<tree.count {
            let entry = tree[index]
            let (size, runs): (UInt64, [TreeEntry.Extent]?)
            switch entry.content {
            case .directory, .link: continue
            case .file(let length): (size, runs) = (length, nil)
            case .sparse(let length, let extents): (size, runs) = (length, Array(extents))
            }
            guard let path = String(validating: tree.path(of: index), as: UTF8.self) else {
                throw EarshotError(.nameRejected, "\(tree.pathText(of: index).escapedForDisplay) is not UTF-8, as a device needs it")
            }
            guard files.count < EarshotLimits.deviceOfferFiles else {
                throw EarshotError(.tooLarge, "a LocalSend device takes at most \(EarshotLimits.deviceOfferFiles) files at once")
            }
            let modified = WallTime(seconds: entry.modified.seconds, nanoseconds: entry.modified.nanoseconds)
            let file = DeviceFile(
                id: "\(index)", name: "\(row.name)/\(path)", size: size, contentType: MediaType.guess(path), modified: modified)
            files.append(Self(file, .part(of: content, from: tree.data(of: index).lowerBound, runs: runs)))
        }
        guard !files.isEmpty else { throw EarshotError(.invalidSource, "\(row.name) has no files that a device could receive") }
        return files
    }
}

/// The body of an upload, which is read while it is sent.
struct ShippedBody: AsyncSequence, Sendable {
    typealias Element = ByteBuffer

    /// The size of one piece, in bytes.
    private static let pieceSize = 256 * 1024

    let file: ShippedFile
    let pacer: TransferPacer
    let sourceError: SourceError
    let report: @Sendable (ShipmentReport) -> Void

    struct Iterator: AsyncIteratorProtocol {
        let body: ShippedBody
        private var offset: UInt64 = 0

        init(_ body: ShippedBody) { self.body = body }

        mutating func next() async throws -> ByteBuffer? {
            guard self.offset < self.body.file.file.size else { return nil }
            let (piece, position) = try await self.body.read(at: self.offset)
            self.offset += UInt64(piece.readableBytes)
            self.body.pacer.moved(piece.readableBytes)
            self.body.report(.moved(to: position))
            return piece
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(self) }

    /// Returns the next piece, and the position of its end in the resource.
    private func read(at offset: UInt64) async throws -> (ByteBuffer, UInt64) {
        let left = self.file.file.size - offset
        let wanted = Int(Swift.min(UInt64(Self.pieceSize), left))
        switch self.file.content {
        case .bytes(let bytes): return (bytes, left)
        case .part(let content, let start, let runs):
            guard let wanted = await self.pacer.roomAwaited(for: wanted, until: { false }) else { throw CancellationError() }
            do throws(EarshotError) {
                guard let runs else { return try await self.read(content, at: start + offset, wanted, isLast: UInt64(wanted) == left) }
                return try await self.read(content, runs, at: offset, from: start, wanted)
            } catch {
                self.sourceError.set(error)
                throw error
            }
        }
    }

    private func read(
        _ content: any OutgoingContent, at position: UInt64, _ wanted: Int, isLast: Bool = false
    ) async throws(EarshotError) -> (ByteBuffer, UInt64) {
        let piece = try await content.read(at: position, count: wanted)
        guard piece.readableBytes > 0 else { throw EarshotError(.sourceChanged, "it became shorter while it was sent; send it again") }
        // A directory's files, which do not begin its tree, are checked when their last bytes are read. The device must not take a changed
        // file for a complete one.
        if isLast, piece.readableBytes == wanted, position + UInt64(wanted) == self.file.file.size { _ = try await content.finish(.xxh3) }
        return (piece, position + UInt64(piece.readableBytes))
    }

    /// Reads a piece of a sparse file: a part of a run, or zeros of a hole.
    private func read(
        _ content: any OutgoingContent, _ runs: [TreeEntry.Extent], at offset: UInt64, from start: UInt64, _ wanted: Int
    ) async throws(EarshotError) -> (ByteBuffer, UInt64) {
        var position = start
        for run in runs {
            if offset < run.offset {
                return (ByteBuffer(repeating: 0, count: Int(Swift.min(UInt64(wanted), run.offset - offset))), position)
            }
            let within = offset - run.offset
            if within < run.length {
                return try await self.read(content, at: position + within, Int(Swift.min(UInt64(wanted), run.length - within)))
            }
            position += run.length
        }
        return (ByteBuffer(repeating: 0, count: wanted), position)
    }
}

/// The error of a source, stored for the job that sends it.
final class SourceError: Sendable {
    private let error = Mutex<EarshotError?>(nil)

    var value: EarshotError? { self.error.withLock { $0 } }

    func set(_ error: EarshotError) { self.error.withLock { $0 = $0 ?? error } }
}

/// The types of common files, by which phones choose the application that opens a file.
private enum MediaType {
    private static let types = [
        "avi": "video/x-msvideo", "csv": "text/csv", "gif": "image/gif", "heic": "image/heic", "html": "text/html", "jpeg": "image/jpeg",
        "jpg": "image/jpeg", "json": "application/json", "md": "text/markdown", "mkv": "video/x-matroska", "mov": "video/quicktime",
        "mp3": "audio/mpeg", "mp4": "video/mp4", "pdf": "application/pdf", "png": "image/png", "svg": "image/svg+xml", "txt": "text/plain",
        "wav": "audio/wav", "webm": "video/webm", "webp": "image/webp", "zip": "application/zip",
    ]

    static func guess(_ name: String) -> String {
        let end = name.utf8.lastIndex(of: UInt8(ascii: ".")).map { name[name.utf8.index(after: $0)...].lowercased() }
        return end.flatMap { Self.types[$0] } ?? "application/octet-stream"
    }
}

extension WallTime {
    /// Creates the time of a file's last change.
    fileprivate init(seconds: Int64, nanoseconds: UInt32) {
        let (milliseconds, overflow) = seconds.multipliedReportingOverflow(by: 1000)
        self.init(
            milliseconds: overflow
                ? (seconds < 0 ? .min : .max) : milliseconds.addingReportingOverflow(Int64(nanoseconds / 1_000_000)).partialValue)
    }
}
