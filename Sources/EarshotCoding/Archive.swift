/// A value that a program keeps in a file: its settings, its progress, what it knows of its peers.
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
/// A file is there whole or not at all, whatever stops the machine, and what was written is on disk when ``write(_:)`` returns. What is no
/// archive of this kind, was written by a later version of the program, or is damaged is told as an error that names the file, and left as it is:
/// neither read nor replaced. Both calls wait for the disk. Of two programs that write to one file the last one wins.
public struct Archive<Value: Codable & Sendable>: Sendable {
    /// Where the file is.
    public let path: String
    /// What the program calls values of this type: 1 to 64 of `a` to `z`, `0` to `9`, `.` and `-`.
    public let kind: String
    /// Of the type that values have now: 1 or more, and more than before whenever older ones would not decode.
    public let version: UInt32
    /// How a value stands in the file.
    public let coding: MessageCoding
    private let migrations: [ArchiveMigration]

    /// An archive at that path, in a directory that is there. The file need not be.
    ///
    /// A kind or a version outside their ranges, and two migrations from one version, are errors in the program, and end it.
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

    /// The value in the file; `nil` where there is no file. One of an older version is brought up to this one first, in memory: the file changes
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

    /// Puts the value in the place of the one in the file, readable by the file's owner alone (mode 0600). It is on disk when this returns;
    /// where it throws, the file is what it was.
    /// - Throws: ``ArchiveError`` with any code but `noMigration` and `undecodable`.
    public func write(_ value: Value) throws(ArchiveError) {
        let json: [UInt8]
        do throws(JSONProblem) {
            json = try self.coding.encode(value)
        } catch {
            throw self.error(.unencodable, error.description)
        }
        // Not over what this program does not know.
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

/// One step from an older version of a value to the next one.
public struct ArchiveMigration: Sendable {
    /// From which version it leads, to the one after it.
    public let version: UInt32
    let step: @Sendable ([UInt8], MessageCoding) throws(JSONProblem) -> [UInt8]

    /// Reads the value as it was in `version`, and makes that of the version after it.
    public init<Old: Decodable & SendableMetatype, New: Encodable & SendableMetatype>(
        from version: UInt32, _ change: @escaping @Sendable (Old) -> New
    ) {
        self.version = version
        self.step = { json, coding throws(JSONProblem) in try coding.encode(change(try coding.decode(Old.self, from: json))) }
    }
}

/// Why a value was not read from its file, or not written to it.
public struct ArchiveError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What it comes down to.
    public enum Code: String, Hashable, Sendable, CaseIterable {
        /// The file is no archive, or one of another kind.
        case foreign
        /// It is cut off, or not what was written.
        case damaged
        /// It was written by a later version.
        case newer
        /// It was written by an earlier version, and a step from there is missing.
        case noMigration
        /// It is whole, and its value is not one of the type.
        case undecodable
        /// The value cannot be JSON.
        case unencodable
        /// The value is longer than ``ArchiveLimits/size``.
        case tooLarge
        /// The file system does not let it be read.
        case unreadable
        /// The file system does not take it.
        case unwritable
    }

    /// What it comes down to.
    public let code: Code
    /// The file.
    public let path: String
    /// One lower-case sentence without a full stop.
    public let reason: String

    /// File and reason.
    public var description: String { "\(self.path): \(self.reason)" }

    init(_ code: Code, path: String, reason: String) {
        self.code = code
        self.path = path
        self.reason = reason
    }
}
