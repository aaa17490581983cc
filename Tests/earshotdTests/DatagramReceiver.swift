import Foundation
import Glibc
import Testing

@testable import earshotd

/// A Unix datagram socket that takes what is sent to it, in a directory of its own.
final class DatagramReceiver: Sendable {
    let path: String
    private let descriptor: CInt

    init(receiveBuffer: CInt? = nil) throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("r\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        self.path = directory.appendingPathComponent("s").path
        self.descriptor = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let name = Array(self.path.utf8)
        try #require(name.count < MemoryLayout.size(ofValue: address.sun_path))
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(self.descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try #require(result == 0, "\(String(cString: strerror(errno)))")
        // A test that waits in vain fails.
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(self.descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit {
        close(self.descriptor)
        try? FileManager.default.removeItem(atPath: (self.path as NSString).deletingLastPathComponent)
    }

    /// The next datagram.
    func bytes() throws -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        let count = recv(self.descriptor, &buffer, buffer.count, 0)
        try #require(count >= 0, "nothing came: \(String(cString: strerror(errno)))")
        return Array(buffer[..<count])
    }

    func text() throws -> String { String(decoding: try self.bytes(), as: UTF8.self) }
}
