internal import EarshotSafety

/// Where a directory really is, however its path is written: those from the root down to it, as the kernel tells them apart, so that
/// neither a link nor a bind mount hides that two paths meet. What is not there yet, or may not be looked at, is known by its names.
struct DirectoryPlace: Sendable {
    private struct FileID: Sendable, Hashable {
        let device: UInt64
        let inode: UInt64
    }

    private let chain: [FileID]
    /// Below the last of those.
    private let missing: [String]

    /// The place of an absolute path.
    init(_ path: String) {
        var names = path.split(separator: "/").filter { $0 != "." }.map(String.init)
        var missing: [String] = []
        var resolved = SettingsFiles.resolved(path)
        while resolved == nil, let last = names.popLast() {
            missing.insert(last, at: 0)
            resolved = SettingsFiles.resolved("/" + names.joined(separator: "/"))
        }
        var paths = ["/"]
        var above = ""
        for name in (resolved ?? "").split(separator: "/") {
            above += "/\(name)"
            paths.append(above)
        }
        self.chain = paths.compactMap { path in
            FileStatus(path: path).map { status in FileID(device: status.device, inode: status.inode) }
        }
        self.missing = missing
    }

    func isSame(as other: DirectoryPlace) -> Bool { self.holds(other) && other.holds(self) }

    /// Whether the other one is this one, or somewhere below it.
    func holds(_ other: DirectoryPlace) -> Bool {
        guard let last = self.chain.last else { return false }
        return self.missing.isEmpty ? other.chain.contains(last) : other.chain.last == last && other.missing.starts(with: self.missing)
    }
}
