import Foundation
import Glibc
import Logging
import Testing

@testable import earshotd

/// The fields of an entry of the journal, read by the protocol's rules.
private func fields(of entry: [UInt8]) throws -> [(name: String, value: String)] {
    var fields: [(String, String)] = []
    var rest = entry[...]
    while !rest.isEmpty {
        let end = try #require(rest.firstIndex(of: UInt8(ascii: "\n")))
        let line = rest[..<end]
        rest = rest[(end + 1)...]
        if let equals = line.firstIndex(of: UInt8(ascii: "=")) {
            fields.append((String(decoding: line[..<equals], as: UTF8.self), String(decoding: line[(equals + 1)...], as: UTF8.self)))
            continue
        }
        try #require(rest.count >= 8)
        let count = rest.prefix(8).reversed().reduce(0) { $0 << 8 | Int($1) }
        rest = rest.dropFirst(8)
        try #require(rest.count > count && rest[rest.startIndex + count] == UInt8(ascii: "\n"))
        fields.append((String(decoding: line, as: UTF8.self), String(decoding: rest.prefix(count), as: UTF8.self)))
        rest = rest.dropFirst(count + 1)
    }
    return fields
}

@Suite struct JournalEntryTests {
    @Test func aValueOnOneLineFollowsAnEqualsSign() {
        var entry = JournalEntry()
        entry.add("MESSAGE", "a=b")
        entry.add("EMPTY", "")
        #expect(String(decoding: entry.bytes, as: UTF8.self) == "MESSAGE=a=b\nEMPTY=\n")
    }

    @Test func aValueOfSeveralLinesHasItsLengthBeforeIt() {
        var entry = JournalEntry()
        entry.add("MESSAGE", "ä\nPRIORITY=0\n")
        #expect(entry.bytes == Array("MESSAGE\n".utf8) + [14, 0, 0, 0, 0, 0, 0, 0] + Array("ä\nPRIORITY=0\n\n".utf8))
    }

    @Test(arguments: [
        ("EARSHOT_peer-id", "EARSHOT_PEER_ID"), ("_PID", "PID"), ("9a", "A"), ("a=b\nc", "A_B_C"), ("ü", "FIELD"), ("", "FIELD"),
        (String(repeating: "x", count: 100), String(repeating: "X", count: JournalEntry.nameLimit)),
    ]) func namesAreWhatTheJournalTakes(_ name: String, _ expected: String) throws {
        var entry = JournalEntry()
        entry.add(name, "v")
        #expect(try fields(of: entry.bytes).map(\.name) == [expected])
    }
}

@Suite struct LogLineTests {
    private static let nasty = LogLine(
        level: .warning, label: "l", message: "a\nb", metadata: ["peer": "x\u{1B}[1A \u{202E}y", "n": "1"],
        place: LogLine.Place(file: "M/F.swift", line: 7, function: "f()"))

    @Test func anEntryIsOneLine() {
        #expect(Self.nasty.journalLine == "<4>l: a\\nb n=1 peer=\"x\\e[1A \\u{202E}y\"\n")
        let time = Date(timeIntervalSince1970: 0)
        #expect(Self.nasty.line(at: time) == "1970-01-01T00:00:00.000Z warning l: a\\nb n=1 peer=\"x\\e[1A \\u{202E}y\"\n")
    }

    @Test func theJournalGetsFields() throws {
        let fields = try fields(of: Self.nasty.journalEntry.bytes)
        let expected = [
            "MESSAGE": "l: a\\nb n=1 peer=\"x\\e[1A \\u{202E}y\"", "PRIORITY": "4", "SYSLOG_IDENTIFIER": "earshotd", "EARSHOT_LOGGER": "l",
            "CODE_FILE": "M/F.swift", "CODE_LINE": "7", "CODE_FUNC": "f()", "EARSHOT_N": "1", "EARSHOT_PEER": "x\\e[1A \\u{202E}y",
        ]
        #expect(fields.count == expected.count)
        #expect(Dictionary(uniqueKeysWithValues: fields.map { ($0.name, $0.value) }) == expected)
    }

    @Test(arguments: [Logger.Level.trace, .debug, .info, .notice, .warning, .error, .critical]) func everyLevelHasItsPriority(
        _ level: Logger.Level
    ) throws {
        let priorities: [Logger.Level: String] = [
            .trace: "7", .debug: "7", .info: "6", .notice: "5", .warning: "4", .error: "3", .critical: "2",
        ]
        let entry = LogLine(level: level, label: "earshotd", message: "m").journalEntry
        let fields = try fields(of: entry.bytes)
        #expect(fields.first { $0.name == "PRIORITY" }?.value == priorities[level])
        #expect(fields.first { $0.name == "MESSAGE" }?.value == "m", "the identifier says who")
    }

    @Test func aLineThatIsTooLongIsCut() throws {
        for count in [LogLine.byteLimit - 4, LogLine.byteLimit - 3, 1_000_000] {
            let line = LogLine(level: .info, label: "l", message: String(repeating: "é", count: count / 2), metadata: [:])
            #expect(line.line(at: Date()).utf8.count <= LogLine.byteLimit)
            #expect(line.line(at: Date()).hasSuffix("...\n"))
        }
        let fits = LogLine(level: .info, label: "l", message: String(repeating: "x", count: LogLine.byteLimit - 7))
        #expect(fits.journalLine.utf8.count == LogLine.byteLimit && fits.journalLine.hasSuffix("x\n"))
        let cut = LogLine(level: .info, label: "l", message: String(repeating: "x", count: LogLine.byteLimit - 6))
        #expect(cut.journalLine.utf8.count == LogLine.byteLimit && cut.journalLine.hasSuffix("x...\n"))
    }
}

@Suite struct LogOutputTests {
    /// Both ends of a pipe, the reading one not waiting.
    private struct Pipe {
        let read: CInt
        let write: CInt

        init() throws {
            var ends: [CInt] = [0, 0]
            try #require(pipe(&ends) == 0)
            for end in ends { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
            (self.read, self.write) = (ends[0], ends[1])
        }

        func text() -> String {
            var buffer = [UInt8](repeating: 0, count: 1 << 20)
            let count = Glibc.read(self.read, &buffer, buffer.count)
            return String(decoding: buffer[..<max(count, 0)], as: UTF8.self)
        }

        func close() {
            Glibc.close(self.read)
            Glibc.close(self.write)
        }
    }

    private let line = LogLine(level: .error, label: "l", message: "m", metadata: ["peer": "bob"])

    @Test func theJournalTakesIt() throws {
        let (pipe, journal) = (try Pipe(), try DatagramReceiver())
        defer { pipe.close() }
        LogOutput(descriptor: pipe.write, isJournal: true, journalPath: journal.path).write(self.line)
        #expect(try fields(of: journal.bytes()).contains { $0.name == "EARSHOT_PEER" && $0.value == "bob" })
        #expect(pipe.text() == "")
    }

    @Test func withoutTheJournalsSocketItGoesToStandardError() throws {
        let pipe = try Pipe()
        defer { pipe.close() }
        LogOutput(descriptor: pipe.write, isJournal: true, journalPath: "/nonexistent/socket").write(self.line)
        #expect(pipe.text() == "<3>l: m peer=bob\n")
    }

    @Test func whatTheJournalDoesNotTakeGoesToStandardError() throws {
        let (pipe, journal) = (try Pipe(), try DatagramReceiver())
        defer { pipe.close() }
        let output = LogOutput(descriptor: pipe.write, isJournal: true, journalPath: journal.path)
        // Each value within its limit, all together more than a datagram holds.
        let metadata = Dictionary(uniqueKeysWithValues: (0..<200).map { ("k\($0)", "\(String(repeating: "x", count: 4000))") })
        output.write(
            LogLine(level: .error, label: "l", message: "m", metadata: metadata.mapValues { Logger.MetadataValue.string($0) }))
        #expect(pipe.text().hasPrefix("<3>l: m k0=xxx"))
        // A queue that is full: nothing reads the journal's end.
        var toJournal = 0
        while pipe.text() == "" {
            output.write(self.line)
            toJournal += 1
            try #require(toJournal < 100_000)
        }
        #expect(toJournal > 1)
    }

    @Test func aReaderThatStalledIsNotWaitedFor() throws {
        let pipe = try Pipe()
        defer { pipe.close() }
        // The pipe is blocking, as a shell's pipe is: a write would wait.
        try #require(fcntl(pipe.write, F_SETFL, 0) == 0)
        let output = LogOutput(descriptor: pipe.write, isJournal: false, journalPath: nil)
        let long = LogLine(level: .error, label: "l", message: String(repeating: "x", count: LogLine.byteLimit))
        for _ in 0..<10_000 { output.write(long) }
        #expect(pipe.text().hasSuffix("...\n"), "whole lines only")
        output.write(self.line)
        #expect(pipe.text().hasSuffix(" error l: m peer=bob\n"))
    }

    @Test func aLevelCountsAtOnce() throws {
        let pipe = try Pipe()
        defer { pipe.close() }
        let level = LogLevel(.error)
        let output = LogOutput(descriptor: pipe.write, isJournal: true, journalPath: nil)
        let limiter = LogLimiter()
        let logger = Logger(label: "l") { DaemonLog(label: $0, level: level, output: output, limiter: limiter) }
        var quiet = logger
        quiet.logLevel = .critical
        logger.info("one")
        level.value = .debug
        logger.debug("two")
        quiet.error("three")
        #expect(pipe.text() == "<7>l: two\n")
    }
}
