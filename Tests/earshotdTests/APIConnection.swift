import APIDocument
import Foundation
import NIOCore
import NIOPosix
import Synchronization
import Testing

/// An answer as it came.
struct APIAnswer: Sendable {
    let status: Int
    /// Names in lower case.
    let fields: [String: String]
    let body: [UInt8]

    var text: String { String(decoding: self.body, as: UTF8.self) }
    /// The body as JSON.
    var json: JSONValue { get throws { try JSONValue(parsing: self.body) } }
    var code: String? { (try? self.json)?["code"]?.string }
}

/// The answers that the tests have seen. A call that no test makes fails the suite.
final class SeenAnswers: Sendable {
    private let seen = Mutex<Set<String>>([])

    func insert(_ method: String, _ template: String, _ status: Int) {
        self.seen.withLock { _ = $0.insert("\(method) \(template) \(status)") }
    }

    var all: Set<String> { self.seen.withLock { $0 } }
}

/// A client that makes each call on a connection of its own.
struct APICaller {
    let path: String
    var seen: SeenAnswers?

    /// Makes a request, and checks its answer against the document.
    func call(
        _ method: String, _ target: String, _ fields: [String] = [], json: String? = nil, body: [UInt8]? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> APIAnswer {
        try await APIConnection.with(self.path, seen: self.seen) { conversation in
            let hasType = json == nil || fields.contains { $0.lowercased().hasPrefix("content-type") }
            let fields = hasType ? fields : fields + ["Content-Type: application/json"]
            try await conversation.ask(method, target, fields, body: json.map { Array($0.utf8) } ?? body)
            return try await conversation.answer(sourceLocation: sourceLocation)
        }
    }
}

/// A client that writes exactly the given bytes to a socket, and parses answers strictly. Every answer is checked against the API's
/// document.
enum APIConnection {
    struct Ended: Error {}

    /// Runs a conversation on a new connection.
    static func with<Value: Sendable>(
        _ path: String, seen: SeenAnswers? = nil, _ body: (inout Conversation) async throws -> Value
    ) async throws -> Value {
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.allowRemoteHalfClosure, value: true)
            .connect(unixDomainSocketPath: path) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(
                        wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true))
                }
            }
        return try await channel.executeThenClose { inbound, outbound in
            var conversation = Conversation(iterator: inbound.makeAsyncIterator(), outbound: outbound, seen: seen)
            return try await body(&conversation)
        }
    }

    /// The requests and answers on one connection.
    struct Conversation {
        fileprivate var iterator: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator
        fileprivate let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
        fileprivate let seen: SeenAnswers?
        private var unread = ByteBuffer()
        private var asked: [(method: String, target: String)] = []

        fileprivate init(
            iterator: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator, outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>,
            seen: SeenAnswers?
        ) {
            self.iterator = iterator
            self.outbound = outbound
            self.seen = seen
        }

        /// Sends a text as it is.
        func say(_ text: String) async throws { try await self.outbound.write(ByteBuffer(string: text)) }

        /// Sends bytes as they are.
        func say(_ bytes: [UInt8]) async throws { try await self.outbound.write(ByteBuffer(bytes: bytes)) }

        /// Nothing more will be said.
        func finish() { self.outbound.finish() }

        /// A request, whose answer `answer()` reads.
        mutating func ask(_ method: String, _ target: String, _ fields: [String] = [], body: [UInt8]? = nil) async throws {
            var head = "\(method) \(target) HTTP/1.1\r\n"
            if !fields.contains(where: { $0.lowercased().hasPrefix("host:") }) { head += "Host: localhost\r\n" }
            for field in fields { head += field + "\r\n" }
            if let body { head += "Content-Length: \(body.count)\r\n" }
            var buffer = ByteBuffer(string: head + "\r\n")
            if let body { buffer.writeBytes(body) }
            self.asked.append((method, target))
            try await self.outbound.write(buffer)
        }

        /// The head of an answer; the body is read by the caller.
        mutating func head() async throws -> (status: Int, fields: [String: String]) {
            var lines: [String] = []
            while true {
                let line = try await self.line()
                if line.isEmpty { break }
                lines.append(line)
            }
            let status = lines.first?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
            var fields: [String: String] = [:]
            for line in lines.dropFirst() {
                let parts = line.split(separator: ":", maxSplits: 1)
                fields[parts[0].lowercased()] = parts.count > 1 ? parts[1].trimmingCharacters(in: .whitespaces) : ""
            }
            if status == 100 { return try await self.head() }
            return (status, fields)
        }

        /// Returns the next answer, checked against the document if the request is known.
        mutating func answer(sourceLocation: SourceLocation = #_sourceLocation) async throws -> APIAnswer {
            let asked = self.asked.isEmpty ? nil : self.asked.removeFirst()
            let (status, fields) = try await self.head()
            var body: [UInt8] = []
            if asked?.method == "HEAD" || status == 204 {
                // The answer has no body, even if its head announces one.
            } else if fields["transfer-encoding"] == "chunked" {
                while let chunk = try await self.chunk() { body += chunk }
            } else if let length = fields["content-length"].flatMap({ Int($0) }) {
                body = try await self.bytes(length)
            }
            let answer = APIAnswer(status: status, fields: fields, body: body)
            if let asked { self.check(asked.method, asked.target, answer, sourceLocation) }
            return answer
        }

        private func check(_ method: String, _ target: String, _ answer: APIAnswer, _ sourceLocation: SourceLocation) {
            let faults = APIDocument.shared.faults(
                method, target,
                .init(
                    status: answer.status, contentType: answer.fields["content-type"], allow: answer.fields["allow"], body: answer.body))
            #expect(faults.isEmpty, "\(method) \(target)", sourceLocation: sourceLocation)
            if let template = APIDocument.shared.template(target) { self.seen?.insert(method, template, answer.status) }
        }

        /// One chunk of a chunked body; `nil` at its end.
        mutating func chunk() async throws -> [UInt8]? {
            let size = try #require(Int(try await self.line(), radix: 16))
            guard size > 0 else {
                _ = try await self.line()
                return nil
            }
            let bytes = try await self.bytes(size)
            _ = try await self.line()
            return bytes
        }

        /// A line without its end.
        mutating func line() async throws -> String {
            while true {
                if let end = self.unread.readableBytesView.firstIndex(of: UInt8(ascii: "\n")) {
                    let length = end - self.unread.readerIndex + 1
                    let text = self.unread.readString(length: length) ?? ""
                    return String(text.unicodeScalars.filter { $0 != "\r" && $0 != "\n" }.map(Character.init))
                }
                try await self.fill()
            }
        }

        /// Returns the next `count` bytes.
        mutating func bytes(_ count: Int) async throws -> [UInt8] {
            while self.unread.readableBytes < count { try await self.fill() }
            return self.unread.readBytes(length: count) ?? []
        }

        /// Whether the other side has ended the connection, with nothing left to read.
        mutating func hasEnded() async throws -> Bool {
            do {
                try await self.fill()
                return false
            } catch is Ended {
                return self.unread.readableBytes == 0
            } catch is IOError {
                return true
            }
        }

        private mutating func fill() async throws {
            guard var more = try await self.iterator.next(isolation: #isolation) else { throw Ended() }
            self.unread.writeBuffer(&more)
        }
    }
}
