/// The first half of a TLS 1.2 handshake by hand, in which a client's certificates are not encrypted: any bytes can take their place.
final class HandmadeHandshake {
    struct Refused: Error {}

    let socket: PlainSocket

    /// The first message of a client, with the algorithms that all servers have.
    static let hello: [UInt8] = {
        let extensions: [UInt8] =
            [0, 10, 0, 4, 0, 2, 0, 23] + [0, 11, 0, 2, 1, 0] + [0, 13, 0, 8, 0, 6, 8, 4, 4, 1, 4, 3]
        let body: [UInt8] =
            [3, 3] + [UInt8](repeating: 7, count: 32) + [0] + [0, 4, 0xC0, 0x2F, 0xC0, 0x30] + [1, 0] + [0, UInt8(extensions.count)]
            + extensions
        return HandmadeHandshake.records(1, body)
    }()

    /// Connects, and continues to the end of the server's first messages.
    init(to port: UInt16, from source: String) throws {
        self.socket = try PlainSocket(port: port, from: source)
        self.socket.send(Self.hello)
        var bytes: [UInt8] = []
        while !Self.messages(of: bytes).contains(14) {
            guard let piece = self.socket.receive(), !piece.isEmpty else { throw Refused() }
            bytes += piece
        }
        // The server asks for certificates.
        guard Self.messages(of: bytes).contains(13) else { throw Refused() }
    }

    /// Sends certificates and a key exchange that is none. Returns whether the server has closed the connection.
    func finish(with certificates: [UInt8]) -> Bool {
        // The server may close before it has read everything.
        self.socket.send(Self.records(11, certificates) + Self.records(16, []))
        return self.socket.receiveAll() != nil
    }

    /// Returns the list of certificates in a message.
    static func list(_ certificates: [[UInt8]]) -> [UInt8] {
        let all = certificates.flatMap { Self.length($0.count) + $0 }
        return Self.length(all.count) + all
    }

    /// Returns three bytes of a length.
    static func length(_ count: Int) -> [UInt8] { [16, 8, 0].map { UInt8(truncatingIfNeeded: count >> $0) } }

    /// Returns the records of one message.
    private static func records(_ type: UInt8, _ body: [UInt8]) -> [UInt8] {
        let message = [type] + Self.length(body.count) + body
        return stride(from: 0, to: message.count, by: 16_384).flatMap { start in
            let piece = message[start..<min(start + 16_384, message.count)]
            return [22, 3, 3, UInt8(piece.count >> 8), UInt8(piece.count & 255)] + piece
        }
    }

    /// Returns the types of the whole messages in records.
    private static func messages(of records: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = records[...]
        while rest.count >= 5 {
            let header = Array(rest.prefix(5))
            let count = Int(header[3]) << 8 | Int(header[4])
            guard header[0] == 22, rest.count >= 5 + count else { break }
            bytes += rest.dropFirst(5).prefix(count)
            rest = rest.dropFirst(5 + count)
        }
        var types: [UInt8] = []
        rest = bytes[...]
        while rest.count >= 4 {
            let header = Array(rest.prefix(4))
            let count = Int(header[1]) << 16 | Int(header[2]) << 8 | Int(header[3])
            guard rest.count >= 4 + count else { break }
            types.append(header[0])
            rest = rest.dropFirst(4 + count)
        }
        return types
    }
}
