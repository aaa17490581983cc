internal import Glibc

/// The name of new content that is not complete yet, on file systems that know no unnamed files: `.earshot-RANDOM.part`, locked while it is
/// written.
///
/// The kernel releases the lock when the process ends, in whatever way. A file with such a name and no lock belongs to no process any more.
/// The name alone proves nothing, as a peer may send a file of that name. A part is therefore marked by its sticky bit, which no received
/// file has.
package enum PartName {
    private static let prefix = ".earshot-"
    private static let suffix = ".part"
    /// The length of two random 64-bit numbers in base 36: up to 26 digits, fewer if they begin with zeros.
    private static let digits = 12...26

    /// Returns a new name.
    package static func random() throws(FileError) -> SafeName {
        var generator = SystemRandomNumberGenerator()
        let number = String(generator.next(), radix: 36) + String(generator.next(), radix: 36)
        let padding = String(repeating: "0", count: max(0, Self.digits.lowerBound - number.utf8.count))
        let text = Self.prefix + padding + number + Self.suffix
        guard let name = try? SafeName(text) else { throw FileError("name", text, code: EINVAL) }
        return name
    }

    /// Whether a name has this form, which no user is likely to choose.
    package static func isOne(_ name: SafeName) -> Bool {
        let text = name.description
        guard text.hasPrefix(Self.prefix), text.hasSuffix(Self.suffix) else { return false }
        let middle = text.utf8.dropFirst(Self.prefix.utf8.count).dropLast(Self.suffix.utf8.count)
        return Self.digits.contains(middle.count)
            && middle.allSatisfy {
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0)
            }
    }

    /// Locks a part for this process. On a file system without locks, no process takes it for abandoned either.
    package static func lock(_ descriptor: CInt) { _ = flock(descriptor, LOCK_EX | LOCK_NB) }

    /// Marks a part that the next run may remove. If the file system does not keep the mark, no run removes it.
    package static func mark(_ descriptor: CInt) {
        guard let status = FileStatus(descriptor: descriptor) else { return }
        _ = fchmod(descriptor, status.mode | Self.markBit)
    }

    /// Removes the mark, before the part gets its own name.
    package static func unmark(_ descriptor: CInt) throws(FileError) {
        guard let status = FileStatus(descriptor: descriptor), Self.isMarked(status) else { return }
        guard fchmod(descriptor, status.mode & ~Self.markBit) == 0 else { throw FileError("set the permissions of", "a new file") }
    }

    /// Whether a file is marked as a part, whatever its name.
    package static func isMarked(_ status: FileStatus) -> Bool { status.mode & Self.markBit != 0 }

    private static let markBit = UInt32(S_ISVTX)

    /// Locks a part if no process holds it; returns whether it is now locked by this descriptor.
    package static func tryLock(_ descriptor: CInt) -> Bool { flock(descriptor, LOCK_EX | LOCK_NB) == 0 }
}
