import EarshotClient
import EarshotSafety
import EarshotTree

/// A directory that this process reads itself: to send it, or to copy one that the daemon has published.
struct SourceTree: Sendable {
    /// The size of the whole tree, in bytes.
    let size: UInt64
    private let reader: Exclusive<TreeReader>

    /// Walks the directory, without excluded entries.
    init(_ path: String, excluding exclusions: TreeExclusions? = nil) throws(CommandFailure) {
        do {
            let directory = try SafeDirectory(path: path)
            let scan = try TreeScanner.scan(directory, excluding: exclusions)
            self.size = scan.manifest.size
            self.reader = Exclusive(TreeReader(directory, scan: scan))
        } catch {
            throw Self.failure(error)
        }
    }

    /// The bytes at the offset, at most `count`; `nil` at the end.
    func next(at offset: UInt64, count: Int) throws(ControlError) -> [UInt8]? {
        let result = self.reader.use { reader in
            Result { () throws(TreeError) in try reader.bytes(at: offset, count: count) }
        }
        do {
            let bytes = try result.get()
            return bytes.isEmpty ? nil : bytes
        } catch {
            throw .source("\(error)")
        }
    }

    /// Writes the directory as a tar archive.
    static func archive(_ path: String, named name: String, pieceSize: Int, _ body: ([UInt8]) throws -> Void) throws {
        do {
            let directory = try SafeDirectory(path: path)
            let stream = TarStream(TreeReader(directory, scan: try TreeScanner.scan(directory)), name: name)
            while case let bytes = try stream.next(pieceSize), !bytes.isEmpty { try body(bytes) }
        } catch let error as TreeError {
            throw Self.failure(error)
        } catch let error as FileError {
            throw Self.failure(error)
        }
    }

    /// The command's failure for an error of the tree.
    static func failure(_ error: any Error) -> CommandFailure {
        switch error {
        case let error as CommandFailure: error
        case TreeError.file(let error): CommandFailure(.cannotCreate, error.description)
        case TreeError.unreadable(let error): CommandFailure(.noInput, error.description)
        case let error as FileError: CommandFailure(.noInput, error.description)
        case let error as TreeError: CommandFailure(.data, error.description)
        default: CommandFailure(.failure, "the directory cannot be read")
        }
    }
}
