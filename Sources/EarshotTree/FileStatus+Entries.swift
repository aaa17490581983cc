import EarshotSafety

/// The parts of a tree entry that come from the status of its file.
extension FileStatus {
    /// The time of the last change of the content.
    var entryTime: TreeEntry.Time {
        let nanoseconds = min(max(self.modified.last ?? 0, 0), 999_999_999)
        return TreeEntry.Time(seconds: Int64(self.modified.first ?? 0), nanoseconds: UInt32(nanoseconds))
    }

    /// Returns the permissions. `listed` returns the owning group's permissions in the file's access control list, or -1. With such a list,
    /// the group bits of the mode are the maximum of all listed users and groups. Without the list at the receiver, that maximum would
    /// become the group's own permissions.
    func entryMode(listed: () -> CInt) -> UInt16 {
        let mode = UInt16(truncatingIfNeeded: self.mode) & TreeLimits.modeBits
        let mayBeListed = mode & 0o070 != 0 && (self.kind == .regular || self.kind == .directory)
        let group = mayBeListed ? listed() : -1
        return group < 0 ? mode : mode & ~0o070 | UInt16(group & 7) << 3
    }
}
