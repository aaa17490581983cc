internal import CLinux
package import EarshotSafety
internal import Glibc

/// Reads the bytes of a tree, at any offset, from a directory with its manifest.
///
/// With a scan's identities, each file must be unchanged since the scan: its inode, size and time are compared when its last byte has been
/// read. Used by one thread at a time.
package final class TreeReader {
    /// The entries of the tree.
    package let manifest: TreeManifest
    private let root: TreeRoot
    private let identities: [FileStatus.Identity]?
    private var current: Current?

    /// The file that was read last.
    private struct Current {
        let index: Int
        let file: OpenFile
        let map: ExtentMap
        let entry: TreeEntry
    }

    /// Creates a reader of a scanned directory, which checks that the directory stays unchanged.
    package init(_ directory: SafeDirectory, scan: TreeScanner.Scan) {
        self.root = TreeRoot(directory)
        self.manifest = scan.manifest
        self.identities = scan.identities
    }

    /// Creates a reader of a directory that was written from this manifest.
    package init(_ directory: SafeDirectory, manifest: TreeManifest) {
        self.root = TreeRoot(directory)
        self.manifest = manifest
        self.identities = nil
    }

    /// Fills `buffer` with the bytes at `offset` of the stream, and returns their number; fewer only at the end.
    /// - Throws: `sourceChanged` if a file has changed; `file`, `unreadable`.
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(TreeError) -> Int {
        var filled = 0
        while filled < buffer.count {
            let position = offset + UInt64(filled)
            guard position < self.manifest.size else { break }
            let space = UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
            if position < UInt64(self.manifest.bytes.count) {
                let start = Int(position)
                let count = min(space.count, self.manifest.bytes.count - start)
                self.manifest.bytes.withUnsafeBytes { space.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[start..<start + count])) }
                filled += count
            } else {
                filled += try self.readData(into: space, at: position)
            }
        }
        return filled
    }

    /// Returns the bytes at `offset` of the stream; fewer than `count` only at the end.
    package func bytes(at offset: UInt64, count: Int) throws(TreeError) -> [UInt8] {
        // With no capacity this would be the empty array that all threads share, and its count would be written.
        guard count > 0 else { return [] }
        var failure: TreeError?
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            do throws(TreeError) {
                initialized = try self.read(into: UnsafeMutableRawBufferPointer(buffer), at: offset)
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return bytes
    }

    private func readData(into space: UnsafeMutableRawBufferPointer, at position: UInt64) throws(TreeError) -> Int {
        let current = try self.current(at: position)
        let data = self.manifest.data(of: current.index)
        let (offset, run) = current.map.place(position - data.lowerBound)
        let count = Int(min(UInt64(space.count), run))
        guard count > 0 else { throw .malformed("its data ends early") }
        let read: Int
        do throws(FileError) {
            read = try current.file.read(into: UnsafeMutableRawBufferPointer(rebasing: space[..<count]), at: offset)
        } catch {
            throw .unreadable(error)
        }
        guard read == count else { throw self.changed(current.index) }
        if position + UInt64(count) == data.upperBound {
            self.current = nil
            guard self.isUnchanged(current) else { throw self.changed(current.index) }
        }
        return count
    }

    private func changed(_ index: Int) -> TreeError { .sourceChanged(path: self.root.subject(index, of: self.manifest)) }

    private func isUnchanged(_ current: Current) -> Bool {
        guard let identities = self.identities else { return true }
        guard let status = FileStatus(descriptor: current.file.descriptor), status.kind == .regular else { return false }
        let size: UInt64 =
            switch current.entry.content {
            case .file(let size), .sparse(let size, _): size
            case .directory, .link: 0
            }
        return status.identity == identities[current.index] && status.size == size && status.entryTime == current.entry.modified
    }

    private func current(at position: UInt64) throws(TreeError) -> Current {
        if let current = self.current, self.manifest.data(of: current.index).contains(position) { return current }
        guard let index = self.manifest.entry(at: position) else { throw .malformed("its data ends early") }
        let entry = self.manifest[index]
        let file: OpenFile
        do throws(FileError) {
            let directory = try self.root.open(entry.parent, of: self.manifest)
            let descriptor = entry.name.withCString { openat(directory, $0, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) }
            guard descriptor >= 0 else { throw FileError("open", self.root.subject(index, of: self.manifest)) }
            file = OpenFile(descriptor: descriptor, subject: "a file of \(self.root.directory.path)")
        } catch {
            throw [ELOOP, ENOTDIR, ENOENT, ENXIO].contains(error.code) ? self.changed(index) : .unreadable(error)
        }
        let current = Current(index: index, file: file, map: ExtentMap(entry.content), entry: entry)
        // If the file was replaced before it was opened, this is detected before a byte of it is sent.
        if self.identities != nil, !self.isUnchanged(current) { throw self.changed(index) }
        self.current = current
        return current
    }
}
