import EarshotCore
import EarshotWire

/// The body of `prepare-upload`.
struct OfferMessage: Codable, Sendable, Hashable {
    var info: InfoMessage
    /// The files by their ids, which count instead of the ids in the files.
    var files: [String: FileMessage]

    private enum Key: String, CodingKey {
        case info, files
    }

    /// A file's id as the name of a field.
    private struct FileKey: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { return nil }
    }

    init(info: InfoMessage, files: [DeviceFile]) {
        self.info = info
        self.files = Dictionary(files.map { ($0.id, FileMessage($0)) }) { first, _ in first }
    }

    /// Decodes the body. The files are counted before they are decoded.
    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        self.info = try container.decode(InfoMessage.self, forKey: .info)
        let files = try container.nestedContainer(keyedBy: FileKey.self, forKey: .files)
        guard files.allKeys.count <= EarshotLimits.deviceOfferFiles else { throw TooManyFiles() }
        self.files = [:]
        for key in files.allKeys { self.files[key.stringValue] = try files.decode(FileMessage.self, forKey: key) }
    }

    /// The offer as the node takes it, with the files ordered by name, because a JSON object has no order.
    var offer: DeviceOffer {
        get throws(InvalidMessage) {
            guard !self.files.isEmpty else { throw InvalidMessage("no files are offered") }
            var files: [DeviceFile] = []
            for (id, file) in self.files { files.append(try file.file(id: id)) }
            files.sort { ($0.name, $0.id) < ($1.name, $1.id) }
            return DeviceOffer(info: try self.info.info, files: files)
        }
    }
}

/// An offer has more files than allowed.
struct TooManyFiles: Error {}

/// A file in an offer.
struct FileMessage: Codable, Sendable, Hashable {
    struct Metadata: Codable, Sendable, Hashable {
        /// The time of the last change (RFC 3339).
        var modified: String?
    }

    var id: String
    var fileName: String
    var size: UInt64
    /// A MIME type, or one of the words of old senders, such as `image`.
    var fileType: String
    var sha256: String?
    var preview: String?
    var metadata: Metadata?

    init(_ file: DeviceFile) {
        self.id = file.id
        self.fileName = file.name
        self.size = file.size
        self.fileType = file.contentType
        self.sha256 = file.sha256?.hexadecimal
        self.preview = file.preview
        self.metadata = file.modified.map { Metadata(modified: $0.text) }
    }

    func file(id: String) throws(InvalidMessage) -> DeviceFile {
        guard (1...LocalSendLimits.idBytes).contains(id.utf8.count) else {
            throw InvalidMessage("the id of a file has more than \(LocalSendLimits.idBytes) bytes, or none")
        }
        var digest: [UInt8]?
        // Some senders write an empty text for no checksum.
        if let text = self.sha256, !text.isEmpty {
            digest = Hexadecimal.digest(text)
            guard digest != nil else { throw InvalidMessage("a sha256 is not 64 hexadecimal digits") }
        }
        return DeviceFile(
            id: id, name: self.fileName, size: self.size, contentType: self.fileType, sha256: digest, preview: self.preview,
            modified: self.metadata?.modified.flatMap { WallTime(rfc3339: $0) })
    }
}

/// The answer to an accepted offer.
struct OfferAnswerMessage: Codable, Sendable, Hashable {
    var sessionId: String
    /// The tokens of the accepted files, by the files' ids.
    var files: [String: String]

    init(session: String, tokens: [DeviceToken]) {
        self.sessionId = session
        self.files = Dictionary(tokens.map { ($0.file, $0.token) }) { first, _ in first }
    }

    /// The answer as the node takes it. Tokens for other files than the offered ones are ignored.
    func answer(to offered: Set<String>) throws(InvalidMessage) -> DeviceOfferAnswer {
        let texts = [self.sessionId] + Array(self.files.values)
        guard texts.allSatisfy({ (1...LocalSendLimits.idBytes).contains($0.utf8.count) }) else {
            throw InvalidMessage("the id of a session, or a token, has more than \(LocalSendLimits.idBytes) bytes, or none")
        }
        let tokens = self.files.filter { offered.contains($0.key) }.map { DeviceToken(file: $0.key, token: $0.value) }
        guard !tokens.isEmpty else { return .nothingToSend }
        return .upload(session: self.sessionId, tokens: tokens.sorted { $0.file < $1.file })
    }
}

/// The body of an answer that reports an error.
struct ErrorMessage: Codable, Sendable, Hashable {
    let message: String
}
