package import EarshotSafety
package import FoundationEssentials

internal import EarshotTree
internal import Glibc

/// Finding what a run that was killed has put in place and could not say so.
extension Publisher {
    /// Where a file is that was put into the directory at or after `since`; `nil` where it is not, and for a tree, which notes its place.
    ///
    /// It is the same file, by another name, or a copy of it that was written since then: an older one is of an earlier transfer.
    /// - Throws: `storage`.
    package func find(
        _ content: Content, as wanted: SafeName, in destination: Destination, since: Date
    ) throws(EarshotError) -> String? {
        guard !content.isTree else { return nil }
        do {
            let directory = try SafeDirectory(path: destination.directory)
            let found = try Confinement.reaching([content.directory, directory]) { () throws(FileError) -> SafeName? in
                let source = try content.directory.open(content.name)
                // Clocks of file systems tick more slowly than others.
                let earliest = Int(since.timeIntervalSince1970.rounded(.down)) - 1
                for number in 1...SafeDirectory.numberingLimit {
                    let name = number == 1 ? wanted : wanted.numbered(number)
                    guard try directory.has(name) else { break }
                    guard let file = try? directory.open(name, flags: O_RDONLY | O_NONBLOCK) else { continue }
                    if try Self.isCopy(file, of: source, since: earliest) { return name }
                }
                return nil
            }
            return found.map(directory.subject)
        } catch {
            throw Self.error(error)
        }
    }

    private static func isCopy(_ file: OpenFile, of source: OpenFile, since earliest: Int) throws(FileError) -> Bool {
        let (one, other) = (try file.status(), try source.status())
        guard one.kind == .regular, one.size == other.size, one.owner == other.owner else { return false }
        if one.device == other.device, one.inode == other.inode { return true }
        // A copy has its source's time, as far as the file system keeps it: FAT counts in steps of two seconds.
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

    /// How much is compared at once, in bytes.
    private static let comparedSize = 1024 * 1024
}
