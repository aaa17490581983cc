internal import EarshotSafety
internal import EarshotTree
internal import EarshotWire

/// A directory that is being sent as the bytes of its tree. It is walked once, and a later change of a file is an error.
package final class TreeSource: ResourceSource {
    /// The last component of the path, which is valid as a directory name elsewhere.
    package let name: String
    /// The size of the whole tree, in bytes.
    package let size: UInt64

    package let stamp: String
    /// The identity of the directory on its file system.
    let identity: FileStatus.Identity

    /// The entries of the directory.
    let manifest: TreeManifest

    /// The readers: one for a thread that sends and one for a thread that hashes.
    private let first: Exclusive<TreeReader>
    private let second: Exclusive<TreeReader>

    /// Walks a directory in order to send it. This takes a while, and may wait for a disk.
    ///
    /// - Throws: `invalid-source` for an entry that cannot be read or is neither file, directory nor link; `name-rejected` for a link that
    ///   leads out of the directory; `too-large` beyond the format's limits; `source-changed` if an entry is replaced meanwhile.
    package init(path: String) throws(EarshotError) {
        self.name = try SourceFile.name(path)
        do {
            let directory = try SafeDirectory(path: path)
            self.identity = try directory.status().identity
            let scan = try TreeScanner.scan(directory)
            self.manifest = scan.manifest
            self.size = scan.manifest.size
            // The manifest contains the sizes and times of all files.
            let hash = try XXH3()
            scan.manifest.bytes.withUnsafeBytes { hash.update($0) }
            self.stamp = "tree \(scan.manifest.size) \(hash.digest().hexadecimal)"
            self.first = Exclusive(TreeReader(directory, scan: scan))
            self.second = Exclusive(TreeReader(directory, scan: scan))
        } catch let error as EarshotError {
            throw error
        } catch let error as FileError {
            throw EarshotError(.invalidSource, "\(error)", underlying: error)
        } catch let error as TreeError {
            throw EarshotError(error)
        } catch {
            throw EarshotError(.invalidSource, "the directory cannot be read", underlying: error)
        }
    }

    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(EarshotError) -> Int {
        // Stored instead of thrown: Swift 6.3 crashes on a typed error that passes through a rethrowing function.
        func read(_ reader: TreeReader) -> Result<Int, TreeError> {
            Result { () throws(TreeError) in try reader.read(into: buffer, at: offset) }
        }
        let result = self.first.useIfFree { read($0) } ?? self.second.use { read($0) }
        do {
            return try result.get()
        } catch {
            throw EarshotError(error)
        }
    }

    /// Returns `nil`: a tree's bytes are in many files, so they have to be read.
    package func extent(at offset: UInt64, count: UInt64) -> FileExtent? { nil }

    /// Does nothing, because each file was checked when its last byte was read.
    package func verify() {}
}

extension EarshotError {
    /// Converts a tree's error for the library's users.
    init(_ error: TreeError) {
        let code: Code =
            switch error {
            case .malformed: .protocolViolation
            case .nameRejected: .nameRejected
            case .tooLarge: .tooLarge
            case .unsupported, .unreadable: .invalidSource
            case .sourceChanged: .sourceChanged
            case .file(let error): error.isNoSpace ? .noSpace : .storage
            }
        self.init(code, "\(error)", underlying: error)
    }
}
