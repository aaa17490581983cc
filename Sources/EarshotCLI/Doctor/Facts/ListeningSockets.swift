import FoundationEssentials
import Glibc

/// The processes that listen on TCP ports, from the kernel's tables (proc(5), /proc/net/tcp).
struct ListeningSockets: Hashable, Sendable {
    /// The sockets' inodes, by port.
    let inodes: [Int: Set<UInt64>]

    /// Reads tables such as `/proc/net/tcp` and `tcp6`.
    init(tables: [String]) {
        var inodes: [Int: Set<UInt64>] = [:]
        for line in tables.flatMap({ $0.split(separator: "\n") }) {
            let fields = line.split(separator: " ")
            // 0A is LISTEN.
            guard fields.count > 9, fields[3] == "0A", let port = fields[1].split(separator: ":").last.flatMap({ Int($0, radix: 16) }),
                let inode = UInt64(fields[9])
            else { continue }
            inodes[port, default: []].insert(inode)
        }
        self.inodes = inodes
    }

    /// The listening sockets of this process's network namespace.
    static func now() -> ListeningSockets {
        ListeningSockets(tables: ["/proc/self/net/tcp", "/proc/self/net/tcp6"].map { SmallFile.text($0) ?? "" })
    }

    /// The process that listens on the port, as far as this user may see it.
    func user(of port: Int) -> DoctorFacts.PortUser {
        guard let wanted = self.inodes[port] else { return .free }
        let links = Set(wanted.map { "socket:[\($0)]" })
        for process in SmallFile.entries("/proc").compactMap({ Int32($0) }).sorted() {
            let descriptors = "/proc/\(process)/fd"
            guard SmallFile.entries(descriptors).contains(where: { SmallFile.link("\(descriptors)/\($0)").map(links.contains) == true })
            else {
                continue
            }
            let name = (SmallFile.text("/proc/\(process)/comm") ?? "?").split(separator: "\n").first.map(String.init) ?? "?"
            return .process(process, name: name)
        }
        return .unknown
    }
}

/// Small system files, read whole.
enum SmallFile {
    /// The most bytes that are read.
    static let limit = 4 * 1024 * 1024

    /// The text; `nil` if the file cannot be read.
    static func text(_ path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 64 * 1024)
        while bytes.count < Self.limit {
            let count = read(descriptor, &piece, piece.count)
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { break }
            bytes += piece[..<count]
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The names in a directory; empty if the directory cannot be read.
    static func entries(_ path: String) -> [String] { (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? [] }

    /// The target of a symbolic link.
    static func link(_ path: String) -> String? {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = buffer.withUnsafeMutableBytes { $0.baseAddress.map { readlink(path, $0, 4096) } ?? -1 }
        return count > 0 ? String(decoding: buffer.prefix(count), as: UTF8.self) : nil
    }
}
