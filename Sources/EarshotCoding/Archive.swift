/// A value that a program keeps in a file, such as its settings, its progress, or its knowledge of peers.
///
/// ```swift
/// let archive = Archive<Settings>(path: "/var/lib/example/settings", kind: "example.settings", version: 2, migrations: [
///     ArchiveMigration(from: 1) { (old: SettingsOfVersion1) in Settings(interval: .seconds(old.interval)) }
/// ])
/// var settings = try archive.read() ?? Settings()
/// settings.interval = .seconds(5)
/// try archive.write(settings)
/// ```
///
/// A file is complete or absent, even if the machine stops, and a written value is on disk when ``write(_:)`` returns. An error names the
/// file if it is not an archive of this kind, was written by a later version of the program, or is damaged; such a file is neither read nor
/// replaced. Both calls wait for the disk. If two programs write to one file, the last one wins.
public struct Archive<Value: Codable & Sendable>: Sendable {
    /// The path of the file.
    public let path: String
    /// The program's name for values of this type: 1 to 64 of `a` to `z`, `0` to `9`, `.` and `-`.
    public let kind: String
    /// The version of the present type of values: 1 or more. It must rise whenever older values would not decode.
    public let version: UInt32
    /// The coding of values in the file.
    public let coding: MessageCoding
    private let migrations: [ArchiveMigration]

    /// Creates an archive at that path, in an existing directory. The file need not exist.
    ///
    /// A kind or a version outside its range, and two migrations from one version, are programming errors, which end the program.
    public init(path: String, kind: String, version: UInt32 = 1, migrations: [ArchiveMigration] = [], coding: MessageCoding = .standard) {
        precondition(ArchiveHeader.isKind(kind), "the kind of an archive is 1 to 64 of a to z, 0 to 9, . and -")
        precondition(version > 0, "versions of an archive begin with 1")
        precondition(Set(migrations.map(\.version)).count == migrations.count, "two migrations lead from one version")
        self.path = path
        self.kind = kind
        self.version = version
        self.coding = coding
        self.migrations = migrations
    }

    /// Returns the value in the file; `nil` if there is no file. A value of an older version is migrated first, in memory: the file changes
    /// with the next ``write(_:)``.
    /// - Throws: ``ArchiveError`` with any code but `unencodable` and `unwritable`.
    public func read() throws(ArchiveError) -> Value? {
        guard let (version, json) = try self.file.read() else { return nil }
        var (current, document) = (version, json)
        while current < self.version {
            guard let migration = self.migrations.first(where: { $0.version == current }) else {
                throw self.error(.noMigration, "nothing leads from version \(current) to \(self.version)")
            }
            do throws(JSONProblem) {
                document = try migration.step(document, self.coding)
            } catch {
                throw self.error(.undecodable, "version \(current) cannot be brought up to date: \(error)")
            }
            current += 1
        }
        do throws(JSONProblem) {
            return try self.coding.decode(Value.self, from: document)
        } catch {
            throw self.error(.undecodable, error.description)
        }
    }

    /// Replaces the value in the file, readable only by the file's owner (mode 0600). The value is on disk when this returns. If it throws,
    /// the file is unchanged.
    /// - Throws: ``ArchiveError`` with any code but `noMigration` and `undecodable`.
    public func write(_ value: Value) throws(ArchiveError) {
        let json: [UInt8]
        do throws(JSONProblem) {
            json = try self.coding.encode(value)
        } catch {
            throw self.error(.unencodable, error.description)
        }
        // Reads first, so as not to overwrite a file that this program does not know.
        _ = try self.file.read()
        try self.file.write(json)
    }

    private var file: ArchiveFile { ArchiveFile(path: self.path, kind: self.kind, version: self.version) }

    private func error(_ code: ArchiveError.Code, _ reason: String) -> ArchiveError {
        ArchiveError(code, path: self.path, reason: reason)
    }
}

/// The limits of every ``Archive``.
public enum ArchiveLimits {
    /// The most bytes of a value's JSON: 64 MiB.
    public static let size = 64 << 20
}

/// A migration from one version of a value to the next.
public struct ArchiveMigration: Sendable {
    /// The version that it migrates from, to the one after it.
    public let version: UInt32
    let step: @Sendable ([UInt8], MessageCoding) throws(JSONProblem) -> [UInt8]

    /// Creates a migration that reads the value of `version`, and makes that of the version after it.
    public init<Old: Decodable & SendableMetatype, New: Encodable & SendableMetatype>(
        from version: UInt32, _ change: @escaping @Sendable (Old) -> New
    ) {
        self.version = version
        self.step = { json, coding throws(JSONProblem) in try coding.encode(change(try coding.decode(Old.self, from: json))) }
    }
}

/// The reason why a value was not read from its file, or not written to it.
public struct ArchiveError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of the error.
    public enum Code: String, Hashable, Sendable, CaseIterable {
        /// The file is not an archive, or an archive of another kind.
        case foreign
        /// The file is truncated, or not as it was written.
        case damaged
        /// The file was written by a later version.
        case newer
        /// The file was written by an earlier version, and a migration is missing.
        case noMigration
        /// The file is complete, and its value is not of the type.
        case undecodable
        /// The value cannot be encoded as JSON.
        case unencodable
        /// The value is longer than ``ArchiveLimits/size``.
        case tooLarge
        /// The file system does not let the file be read.
        case unreadable
        /// The file system does not let the file be written.
        case unwritable
    }

    /// The kind of the error.
    public let code: Code
    /// The path of the file.
    public let path: String
    /// One lower-case sentence without a full stop.
    public let reason: String

    /// The file and the reason.
    public var description: String { "\(self.path): \(self.reason)" }

    init(_ code: Code, path: String, reason: String) {
        self.code = code
        self.path = path
        self.reason = reason
    }
}
