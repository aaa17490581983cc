import EarshotSafety
import Foundation
import Glibc

@testable import EarshotTree

/// A directory for one test, gone with it, and what tests do in it.
final class TreeScratch: Sendable {
    let path: String

    init() throws {
        self.path = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-tree-\(UUID())").path
        try FileManager.default.createDirectory(atPath: self.path, withIntermediateDirectories: true)
    }

    deinit {
        let url = URL(fileURLWithPath: self.path)
        if let parent = try? SafeDirectory(path: url.deletingLastPathComponent().path), let name = try? SafeName(url.lastPathComponent) {
            _ = try? TreeRemoval.remove(name, from: parent)
        }
    }

    func directory(_ name: String = "") throws -> SafeDirectory { try SafeDirectory(path: "\(self.path)/\(name)") }

    func make(_ name: String) throws {
        try FileManager.default.createDirectory(atPath: "\(self.path)/\(name)", withIntermediateDirectories: true)
    }

    func put(_ name: String, _ text: String, mode: mode_t = 0o644) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: "\(self.path)/\(name)"))
        chmod("\(self.path)/\(name)", mode)
    }

    func link(_ name: String, to target: String) { symlink(target, "\(self.path)/\(name)") }

    /// A tree with everything odd in it, below `name`.
    func odd(_ name: String) throws {
        try self.make("\(name)/empty")
        try self.make("\(name)/sub/deeper")
        try self.put("\(name)/plain", "plain text")
        try self.put("\(name)/nothing", "")
        try self.put("\(name)/sub/ünï\ncode", "two\nlines", mode: 0o755)
        try self.put("\(name)/sub/deeper/locked", "nobody may read it", mode: 0)
        self.link("\(name)/link", to: "sub/deeper")
        self.link("\(name)/sub/deeper/up", to: "../../plain")
        self.link("\(name)/dangling", to: "not/there")
        let file = open("\(self.path)/\(name)/sub/holes", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        pwrite(file, "begin", 5, 0)
        pwrite(file, "middle", 6, 1 << 30)
        ftruncate(file, 3 << 30)
        close(file)
        let hollow = open("\(self.path)/\(name)/sub/hollow", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        ftruncate(hollow, 1 << 30)
        close(hollow)
        chmod("\(self.path)/\(name)/empty", 0o1711)
        chmod("\(self.path)/\(name)/sub", 0o555)
        var times = [timespec(tv_sec: 1_234_567_890, tv_nsec: 987_654_321), timespec(tv_sec: 1_234_567_890, tv_nsec: 987_654_321)]
        for entry in ["plain", "dangling", "sub/deeper", "sub", ""] {
            utimensat(AT_FDCWD, "\(self.path)/\(name)/\(entry)", &times, AT_SYMLINK_NOFOLLOW)
            times[1].tv_nsec += 1
        }
    }
}

/// Which times two trees have to have in common.
enum TreeTimes {
    case all
    /// To the millisecond, and none of links.
    case milliseconds
}

/// Everything about a tree but its inodes, by path: two are the same when these are.
func portrait(_ directory: SafeDirectory, _ times: TreeTimes = .all) throws -> [String: String] {
    let scan = try TreeScanner.scan(directory)
    let reader = TreeReader(directory, scan: scan)
    var result: [String: String] = [:]
    for index in 0..<scan.manifest.count {
        let entry = scan.manifest[index]
        let data = scan.manifest.data(of: index)
        let bytes = try reader.bytes(at: data.lowerBound, count: data.count)
        let time =
            switch (times, entry.content) {
            case (.all, _): "\(entry.modified.seconds).\(entry.modified.nanoseconds)"
            case (.milliseconds, .link): "-"
            case (.milliseconds, _): "\(entry.modified.seconds).\(entry.modified.nanoseconds / 1_000_000)"
            }
        result[scan.manifest.pathText(of: index)] = "\(entry.content) \(String(entry.mode, radix: 8)) \(time) \(bytes)"
    }
    return result
}
