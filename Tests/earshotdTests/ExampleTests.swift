import EarshotClient
import EarshotWire
import Foundation
import Testing

@testable import Earshot
@testable import earshotd

/// The examples, as a person uses them, and the articles that are made of them.
@Suite(.timeLimit(.minutes(2))) struct ExampleTests {
    /// A running program, with its user's input and its output.
    private final class Program {
        private let process = Process()
        private let input = Pipe()
        private let output = Pipe()

        init(_ name: String, _ words: [String], socket: String) throws {
            // Beside the tests' own program, which `swift test` gives as an argument.
            let places = CommandLine.arguments.map { URL(fileURLWithPath: $0).deletingLastPathComponent().appending(path: name).path }
            let path = try #require(places.first { FileManager.default.isExecutableFile(atPath: $0) }, "\(name) is not built")
            self.process.executableURL = URL(fileURLWithPath: path)
            self.process.arguments = words
            self.process.environment = ["EARSHOT_SOCKET": socket]
            self.process.standardInput = self.input
            self.process.standardOutput = self.output
            try self.process.run()
        }

        deinit { if self.process.isRunning { self.process.terminate() } }

        func type(_ line: String) throws { try self.input.fileHandleForWriting.write(contentsOf: Data("\(line)\n".utf8)) }

        /// The lines that it prints, one after the other.
        func lines() -> AsyncStream<String> {
            let output = self.output.fileHandleForReading
            return AsyncStream { lines in
                Thread.detachNewThread {
                    var rest = Data()
                    while case let data = output.availableData, !data.isEmpty {
                        rest += data
                        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                            lines.yield(String(decoding: rest[..<end], as: UTF8.self))
                            rest = Data(rest[rest.index(after: end)...])
                        }
                    }
                    lines.finish()
                }
            }
        }

        /// The person ends the input; how the program ends then. A thread waits for that: the daemons that it talks to are in this process.
        func end() async throws -> CInt {
            try self.input.fileHandleForWriting.close()
            let process = self.process
            return await withCheckedContinuation { continuation in
                Thread.detachNewThread {
                    process.waitUntilExit()
                    continuation.resume(returning: process.terminationStatus)
                }
            }
        }
    }

    @Test func twoProgramsChatThroughTheirDaemons() async throws {
        try await APIServer.pair { alice, bob in
            try await alice.agree(with: bob)
            let one = try Program("client-chat", ["bob"], socket: alice.path)
            try one.type("hello")
            let other = try Program("client-chat", ["alice"], socket: bob.path)
            var lines = other.lines().makeAsyncIterator()
            #expect(await lines.next() == "alice: hello")
            try one.type("a \u{1B}[31mred\u{7} word")
            #expect(await lines.next() == "alice: a ?[31mred? word")
            #expect(try await one.end() == 0)
            #expect(try await other.end() == 0)
        }
    }

    /// The article's program is the example, line by line.
    @Test(arguments: [
        ("EarshotClient/EarshotClient.docc/Chat.md", "client-chat/Chat.swift"),
        ("Earshot/Earshot.docc/Chat.md", "peer-chat/Chat.swift"),
        ("Earshot/Earshot.docc/Sharing.md", "peer-share/Share.swift"),
        ("MultipeerConnectivity/MultipeerConnectivity.docc/Chat.md", "multipeer-chat/Chat.swift"),
        ("MultipeerConnectivity/MultipeerConnectivity.docc/Sharing.md", "multipeer-share/Share.swift"),
    ])
    func theArticleIsTheExample(article: String, example: String) throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let text = try String(contentsOf: root.appending(path: "Sources/\(article)"), encoding: .utf8)
        let blocks = text.components(separatedBy: "```swift\n").dropFirst().compactMap { $0.components(separatedBy: "\n```").first }
        let program = try String(contentsOf: root.appending(path: "Tests/Examples/\(example)"), encoding: .utf8)
        func lines(_ text: String) -> [Substring] { text.split(separator: "\n") }
        #expect(lines(blocks.joined(separator: "\n")) == lines(program))
    }
}
