import Foundation
import Glibc
import Synchronization
import Testing

/// A proxy in front of a daemon's socket. It forwards everything at once, but holds the answers of one call until it is told what to do
/// with them: the daemon has carried out the request, and the command line does not know yet.
final class HeldSocket: Sendable {
    /// The fate of the answers.
    enum Fate: Sendable {
        case kept, passed, dropped
    }

    private struct State {
        var fate = Fate.kept
        /// The number of answers that have been held.
        var held = 0
    }

    /// The proxy's socket.
    let path: String
    private let target: String
    /// The beginning of the request whose answer is held; `nil` for a relay that holds none.
    private let call: [UInt8]?
    private let listener: CInt
    private let state = Mutex(State())

    /// `call` is a method and a path, such as `POST /v1/invitations`.
    init(before daemon: Daemon, holding call: String? = nil) throws {
        self.path = "\(daemon.place)/held"
        self.target = daemon.socket
        self.call = call.map { Array($0.utf8) }
        self.listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        try #require(Self.with(self.path) { bind(self.listener, $0, $1) } == 0 && listen(self.listener, 16) == 0)
        Thread.detachNewThread { self.accept() }
    }

    /// Whether an answer is held.
    var holds: Bool { self.state.withLock { $0.held > 0 } }

    /// Decides about held and future answers.
    func decide(_ fate: Fate) { self.state.withLock { $0.fate = fate } }

    /// Stops accepting connections; existing connections last until either side closes.
    func close() { shutdown(self.listener, Int32(SHUT_RDWR)) }

    private func accept() {
        while case let client = Glibc.accept(self.listener, nil, nil), client >= 0 {
            let server = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            _ = Self.with(self.target) { connect(server, $0, $1) }
            let held = Flag()
            Thread.detachNewThread {
                self.copy(from: client, to: server) { bytes in
                    if self.call.map({ bytes.starts(with: $0) }) ?? false { held.raise() }
                }
            }
            Thread.detachNewThread { self.copy(from: server, to: client) { _ in if held.isRaised { self.hold(client) } } }
        }
        Glibc.close(self.listener)
    }

    private func hold(_ client: CInt) {
        self.state.withLock { $0.held += 1 }
        while true {
            switch self.state.withLock({ $0.fate }) {
            case .kept: usleep(5000)
            case .passed: return
            case .dropped:
                shutdown(client, Int32(SHUT_RDWR))
                return
            }
        }
    }

    private func copy(from: CInt, to: CInt, _ before: ([UInt8]) -> Void) {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        while case let count = recv(from, &bytes, bytes.count, 0), count > 0 {
            before(Array(bytes[..<count]))
            guard send(to, bytes, count, Int32(MSG_NOSIGNAL)) == count else { break }
        }
        // Neither descriptor is closed, since the other thread may still use it. A test's few descriptors are closed with its process.
        shutdown(to, Int32(SHUT_WR))
    }

    private static func with(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> CInt) -> CInt {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
        }
    }
}

/// A flag for an event that has happened.
private final class Flag: Sendable {
    private let value = Mutex(false)
    var isRaised: Bool { self.value.withLock { $0 } }
    func raise() { self.value.withLock { $0 = true } }
}
