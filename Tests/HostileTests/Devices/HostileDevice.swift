import Foundation
import NIOSSL
import Testing

/// An attacking LocalSend device at one address of this machine.
struct HostileDevice {
    static let prefix = "/api/localsend/v2/"

    /// The victim's TCP port.
    let port: UInt16
    var address: String
    var certificate: HostileCertificate?
    var alias = "phone"
    var version = TLSVersion.tlsv13

    init(_ port: UInt16, at address: String = "127.20.0.1", as certificate: HostileCertificate?) {
        self.port = port
        self.address = address
        self.certificate = certificate
    }

    func connect() throws -> DeviceLine {
        try DeviceLine(to: self.port, from: self.address, as: self.certificate, version: self.version)
    }

    /// The description of the device. `changes` replaces fields.
    func info(_ changes: [String: Any] = [:]) -> [String: Any] {
        var info: [String: Any] = [
            "alias": self.alias, "version": "2.1", "deviceModel": "x", "deviceType": "mobile", "port": 53_318, "protocol": "https",
            "fingerprint": self.certificate?.fingerprint ?? String(repeating: "0", count: 64), "download": false,
        ]
        for (key, value) in changes { info[key] = value }
        return info
    }

    /// One offered file.
    static func file(_ name: String, size: Any, _ changes: [String: Any] = [:]) -> [String: Any] {
        var file: [String: Any] = ["id": "1", "fileName": name, "size": size, "fileType": "application/octet-stream"]
        for (key, value) in changes { file[key] = value }
        return file
    }

    /// Returns JSON, in which a text that begins and ends with `@@` is what is between them.
    static func json(_ value: Any) throws -> [UInt8] {
        let text = String(decoding: try JSONSerialization.data(withJSONObject: value), as: UTF8.self)
        return Array(text.replacing("\"@@", with: "").replacing("@@\"", with: "").utf8)
    }

    func offerBody(_ files: [String: Any]) throws -> [UInt8] { try Self.json(["info": self.info(), "files": files]) }

    /// Returns the bytes of a request.
    static func bytes(_ target: String, _ body: [UInt8], method: String = "POST", length: Int? = nil) -> [UInt8] {
        Array("\(method) \(Self.prefix)\(target) HTTP/1.1\r\nHost: x\r\nContent-Length: \(length ?? body.count)\r\n\r\n".utf8) + body
    }

    /// Sends a request on a connection of its own. Returns the status of the answer; `nil` if there is none.
    @discardableResult
    func post(_ target: String, _ body: [UInt8] = []) throws -> Int? {
        let line = try self.connect()
        defer { line.close() }
        line.send(Self.bytes(target, body))
        return line.answer()?.status
    }

    @discardableResult
    func register(_ changes: [String: Any] = [:]) throws -> Int? { try self.post("register", try Self.json(self.info(changes))) }

    /// Offers files by their ids. Returns the status.
    func offer(_ files: [String: Any]) throws -> Int? { try self.post("prepare-upload", try self.offerBody(files)) }

    /// An accepted offer.
    struct Session: Decodable {
        let sessionId: String
        let files: [String: String]
    }

    /// Offers files that the victim accepts.
    func session(_ files: [String: Any]) throws -> Session {
        let line = try self.connect()
        defer { line.close() }
        line.send(Self.bytes("prepare-upload", try self.offerBody(files)))
        let answer = try #require(line.answer())
        try #require(answer.status == 200, "\(answer)")
        return try JSONDecoder().decode(Session.self, from: Data(answer.body.utf8))
    }

    /// Uploads bytes. Returns the status.
    func upload(_ session: String, _ file: String, _ token: String, _ body: [UInt8], length: Int? = nil) throws -> Int? {
        let line = try self.connect()
        defer { line.close() }
        line.send(Self.bytes("upload?sessionId=\(session)&fileId=\(file)&token=\(token)", body, length: length))
        return line.answer()?.status
    }
}

/// A daemon that speaks LocalSend, with the port of its devices.
struct DeviceVictim {
    let daemon: VictimDaemon
    let port: UInt16
    /// The port at which it hears announcements.
    let udpPort: UInt16

    /// Starts a daemon. `localSend` has further settings of that section.
    init(settings: String = "", localSend: String = "", prepare: (String) throws -> Void = { _ in }) throws {
        let wanted = try UDPSocket.freePort()
        let section = "[localsend]\nenabled = yes\nport = \(wanted)\n\(localSend)"
        self.daemon = try VictimDaemon(settings: settings + section, prepare: prepare)
        self.udpPort = wanted
        struct Status: Decodable {
            struct LocalSend: Decodable { let port: UInt16? }
            let localsend: LocalSend
        }
        self.port = try #require(try self.daemon.decoded(Status.self, at: "/v1/status").localsend.port)
    }

    /// A peer of any kind.
    struct Peer: Decodable {
        let id: String
        let name: String
        let kind: String
        let trust: String
        let addresses: [String]
    }

    func devices() throws -> [Peer] {
        struct List: Decodable { let peers: [Peer] }
        return try self.daemon.decoded(List.self, at: "/v1/peers").peers.filter { $0.kind == "localsend" }
    }

    /// A received file.
    struct File: Decodable {
        let id: String
        let name: String
        let state: String
    }

    func files() throws -> [File] {
        struct List: Decodable { let resources: [File] }
        return try self.daemon.decoded(List.self, at: "/v1/resources").resources
    }

    /// The number of pending invitations.
    func pending() throws -> Int {
        struct List: Decodable { let invitations: [Entry] }
        struct Entry: Decodable { let state: String }
        return try self.daemon.decoded(List.self, at: "/v1/invitations").invitations.count { $0.state == "pending" }
    }

    /// The names of the files in the spool.
    var spool: [String] {
        ["partial", "complete", "publishing"].flatMap {
            (try? FileManager.default.contentsOfDirectory(atPath: "\(self.daemon.place)/state/spool/\($0)")) ?? []
        }
    }

    /// Runs an attack of several kinds while a friend sends messages, and checks the bounds of floods.
    func hold(_ name: String, _ body: () throws -> Void) throws {
        let watch = try FloodWatch(self.daemon)
        defer { watch.stop() }
        let result = try watch.result(of: name, body)
        print("measured: \(result.line)")
        let faults = result.faults(withTimes: Scale.isFull || Scale.isRelease)
        #expect(faults.isEmpty, "\(name): \(faults.joined(separator: ", ")) \(watch.failure ?? "")")
        #expect(self.daemon.isAlive, "\(name): the same process")
    }
}

/// A socket that sends datagrams from one of this machine's loopback addresses.
final class UDPSocket {
    private let descriptor: CInt

    init(from source: String) throws {
        self.descriptor = socket(AF_INET, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        guard self.descriptor >= 0, Self.with(source, 0, { bind(self.descriptor, $0, $1) }) == 0 else {
            throw SocketFailure(action: "bind")
        }
    }

    deinit { Glibc.close(self.descriptor) }

    func send(_ bytes: [UInt8], to port: UInt16) {
        _ = Self.with("127.0.0.1", port) { sendto(self.descriptor, bytes, bytes.count, 0, $0, $1) }
    }

    /// Returns a port that no program uses at the moment.
    static func freePort() throws -> UInt16 {
        let socket = try UDPSocket(from: "127.0.0.1")
        var address = sockaddr_in()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(socket.descriptor, $0, &size) }
        }
        guard result == 0 else { throw SocketFailure(action: "getsockname") }
        return UInt16(bigEndian: address.sin_port)
    }

    private static func with<Result>(_ host: String, _ port: UInt16, _ call: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        inet_pton(AF_INET, host, &address.sin_addr)
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { call($0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
        }
    }
}
