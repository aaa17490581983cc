internal import Glibc

/// The name of new content that is not whole yet, where it cannot be without one: `.earshot-RANDOM.part`, locked while it is written.
///
/// The kernel drops the lock with the process, however it ends: what has such a name and no lock belongs to no process any more. The name alone
/// proves nothing, as a peer may send something of that name; so a part is marked by its sticky bit, which nothing has that is received.
package enum PartName {
    private static let prefix = ".earshot-"
    private static let suffix = ".part"
    /// Two random 64-bit numbers in base 36: 26 digits, fewer where they begin with zeros.
    private static let digits = 12...26

    /// A new one.
    package static func random() throws(FileError) -> SafeName {
        var generator = SystemRandomNumberGenerator()
        let number = String(generator.next(), radix: 36) + String(generator.next(), radix: 36)
        let padding = String(repeating: "0", count: max(0, Self.digits.lowerBound - number.utf8.count))
        let text = Self.prefix + padding + number + Self.suffix
        guard let name = try? SafeName(text) else { throw FileError("name", text, code: EINVAL) }
        return name
    }

    /// Whether this is such a name, and no name that a person might have chosen.
    package static func isOne(_ name: SafeName) -> Bool {
        let text = name.description
        guard text.hasPrefix(Self.prefix), text.hasSuffix(Self.suffix) else { return false }
        let middle = text.utf8.dropFirst(Self.prefix.utf8.count).dropLast(Self.suffix.utf8.count)
        return Self.digits.contains(middle.count)
            && middle.allSatisfy {
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0)
            }
    }

    /// Says that this process writes it; where the file system knows no locks, no process takes it for left behind either.
    package static func lock(_ descriptor: CInt) { _ = flock(descriptor, LOCK_EX | LOCK_NB) }

    /// Marks a part that the next run may remove. Where the file system keeps no such mark, no run does.
    package static func mark(_ descriptor: CInt) {
        guard let status = FileStatus(descriptor: descriptor) else { return }
        _ = fchmod(descriptor, status.mode | Self.markBit)
    }

    /// Takes the mark away, before the part gets its own name.
    package static func unmark(_ descriptor: CInt) throws(FileError) {
        guard let status = FileStatus(descriptor: descriptor), Self.isMarked(status) else { return }
        guard fchmod(descriptor, status.mode & ~Self.markBit) == 0 else { throw FileError("set the permissions of", "a new file") }
    }

    /// Whether this is a part, whatever its name.
    package static func isMarked(_ status: FileStatus) -> Bool { status.mode & Self.markBit != 0 }

    private static let markBit = UInt32(S_ISVTX)

    /// Whether no process held it: it is this descriptor's now.
    package static func tryLock(_ descriptor: CInt) -> Bool { flock(descriptor, LOCK_EX | LOCK_NB) == 0 }
}
