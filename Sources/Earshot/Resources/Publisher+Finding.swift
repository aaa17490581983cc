package import EarshotSafety
package import FoundationEssentials

internal import EarshotTree
internal import Glibc

/// Finding files that a killed run has published without recording it.
extension Publisher {
    /// Returns the path of a file that was published into the directory at or after `since`. Returns `nil` if there is none, and for a
    /// tree, which has a note of its destination.
    ///
    /// A match is a hard link to the same file, or a copy of it that was written since then. An older copy belongs to an earlier transfer.
    /// - Throws: `storage`.
    package func find(
        _ content: Content, as wanted: SafeName, in destination: Destination, since: Date
    ) throws(EarshotError) -> String? {
        guard !content.isTree else { return nil }
        do {
            let root = try SafeDirectory(path: destination.directory)
            return try Confinement.reaching([content.directory, root]) { () throws(FileError) -> String? in
                var directory = root
                for name in destination.folder?.components ?? [] {
                    guard try directory.has(name) else { return nil }
                    directory = try directory.subdirectory(name)
                }
                let source = try content.directory.open(content.name)
                // The clocks of file systems have a lower resolution than others.
                let earliest = Int(since.timeIntervalSince1970.rounded(.down)) - 1
                for number in 1...SafeDirectory.numberingLimit {
                    let name = number == 1 ? wanted : wanted.numbered(number)
                    guard try directory.has(name) else { break }
                    guard let file = try? directory.open(name, flags: O_RDONLY | O_NONBLOCK) else { continue }
                    if try Self.isCopy(file, of: source, since: earliest) { return directory.subject(name) }
                }
                return nil
            }
        } catch {
            throw Self.error(error)
        }
    }

    private static func isCopy(_ file: OpenFile, of source: OpenFile, since earliest: Int) throws(FileError) -> Bool {
        let (one, other) = (try file.status(), try source.status())
        guard one.kind == .regular, one.size == other.size, one.owner == other.owner else { return false }
        if one.device == other.device, one.inode == other.inode { return true }
        // A copy keeps its source's time, as far as the file system can store it: FAT has a resolution of two seconds.
        let (time, original) = (one.modified.first ?? 0, other.modified.first ?? 0)
        guard one.changed >= earliest, time >= earliest || time / 2 == original / 2 else { return false }
        var offset: UInt64 = 0
        while offset < one.size {
            let bytes = try file.bytes(at: offset, count: Self.comparedSize)
            guard !bytes.isEmpty, try source.bytes(at: offset, count: bytes.count) == bytes else { return false }
            offset += UInt64(bytes.count)
        }
        return true
    }

    /// The size of one comparison, in bytes.
    private static let comparedSize = 1024 * 1024
}
