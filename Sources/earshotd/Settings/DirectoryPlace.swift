internal import EarshotSafety

/// The real place of a directory, whichever path names it: the device and inode of each directory from the root down to it. Two paths to
/// the same directory are therefore recognised through links and bind mounts. Directories that do not exist yet, or that the daemon may not
/// look up, are represented by their names.
struct DirectoryPlace: Sendable {
    private struct FileID: Sendable, Hashable {
        let device: UInt64
        let inode: UInt64
    }

    private let chain: [FileID]
    /// The names below the last directory of `chain`.
    private let missing: [String]

    /// Determines the place of an absolute path.
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

    /// Whether the other directory is this directory or below it.
    func holds(_ other: DirectoryPlace) -> Bool {
        guard let last = self.chain.last else { return false }
        return self.missing.isEmpty ? other.chain.contains(last) : other.chain.last == last && other.missing.starts(with: self.missing)
    }
}
