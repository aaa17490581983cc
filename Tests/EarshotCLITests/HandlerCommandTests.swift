import EarshotClient
import Foundation
import ModelLaws
import Testing

@testable import EarshotCLI

/// Commands of a user, which are run for what arrives.
@Suite struct HandlerCommandTests {
    private static let variables = HandlerVariables(event: "message.received", socket: "/run/socket")

    /// Runs a shell script, and returns its ending and what it wrote to the file `$OUT`.
    private func run(_ script: String, input: [UInt8] = [], _ variables: HandlerVariables = Self.variables) async throws -> (
        HandlerCommand.Ending, String
    ) {
        let output = FileManager.default.temporaryDirectory.appending(path: "handler-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: output) }
        let command = try HandlerCommand(["sh", "-c", "exec >'\(output.path)'\n\(script)"])
        let ending = try await command.run(input: input, variables)
        return (ending, try String(contentsOf: output, encoding: .utf8))
    }

    @Test func theEndingIsTheCommands() async throws {
        #expect(try await self.run("exit 0").0 == .exited(0))
        #expect(try await self.run("exit 3").0 == .exited(3))
        #expect(try await self.run("kill -9 $$").0 == .killed(signal: SIGKILL))
    }

    @Test func theInputIsWhole() async throws {
        let body = [UInt8](repeating: 7, count: 16 * 1024 * 1024)
        #expect(try await self.run("wc -c", input: body).1 == "\(body.count)\n")
        #expect(try await self.run("cat; cat /dev/stdin", input: []).1 == "")
        #expect(try await self.run("cat /dev/stdin", input: Array("hello".utf8)).1 == "hello")
    }

    /// Neither a command that reads nothing nor its children that live on delay anything.
    @Test func anUnreadInputBlocksNothing() async throws {
        let body = [UInt8](repeating: 7, count: 1024 * 1024)
        let (ending, pid) = try await self.run("sleep 1000 & echo $!", input: body)
        #expect(ending == .exited(0))
        kill(try #require(Int32(pid.trimmingCharacters(in: .newlines))), SIGKILL)
    }

    /// Runs a shell script whose output is collected.
    private func collect(_ script: String) async throws -> (ending: HandlerCommand.Ending, output: [UInt8]?) {
        let output = try CommandOutput()
        let ending = try await HandlerCommand(["sh", "-c", script]).run(output: output, Self.variables)
        return (ending, await output.bytes())
    }

    @Test func theOutputIsCollected() async throws {
        let (ending, output) = try await self.collect("printf 'up %s days\\n' 3; echo not this >/dev/null; exit 4")
        #expect(ending == .exited(4) && output == Array("up 3 days\n".utf8))
        #expect(try await self.collect("exit 0").output == [])
    }

    @Test func theOutputHasALimit() async throws {
        let limit = CommandOutput.limit
        let (ending, output) = try await self.collect("head -c \(limit) /dev/zero")
        #expect(ending == .exited(0) && output?.count == limit)
        #expect(try await self.collect("head -c \(limit + 1) /dev/zero").output == nil)
        // A command that prints without end is ended.
        let endless = try await self.collect("exec cat /dev/zero")
        #expect(endless.ending == .killed(signal: SIGPIPE) && endless.output == nil)
    }

    /// The output ends with the command, also if a child keeps the pipe open.
    @Test func aChildThatLivesOnDoesNotDelayTheOutput() async throws {
        let (ending, output) = try await self.collect("sleep 1000 2>/dev/null & echo $!")
        #expect(ending == .exited(0))
        let pid = String(decoding: output ?? [], as: UTF8.self).trimmingCharacters(in: .newlines)
        kill(try #require(Int32(pid)), SIGKILL)
    }

    /// A command inherits no descriptor, no ignored signal and no terminal.
    @Test func theCommandStartsClean() async throws {
        signal(SIGUSR1, SIG_IGN)
        defer { signal(SIGUSR1, SIG_DFL) }
        let pipe = Pipe()
        defer { withExtendedLifetime(pipe) {} }
        let (_, text) = try await self.run("ls /proc/self/fd; grep SigIgn /proc/self/status; ps -o sid= -p $$; echo $$")
        let lines = text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
        // 3 is that of ls itself.
        #expect(lines.prefix(4) == ["0", "1", "2", "3"])
        // The C library always ignores two signals of its own.
        let ignored = try #require(UInt64(lines[4].suffix(16), radix: 16))
        #expect(ignored & ~(3 << 31) == 0)
        #expect(lines[5] == lines[6])
    }

    @Test func theVariablesSayWhatArrived() async throws {
        var variables = Self.variables
        (variables.from, variables.size, variables.name) = ("bob\n\u{202E}", 12, "a b")
        // The test's own environment has variables of this kind too, such as EARSHOT_BIN.
        let others = Set(ProcessInfo.processInfo.environment.keys).subtracting(variables.names)
        setenv("EARSHOT_NAME", "of the caller", 1)
        setenv("EARSHOT_NAMES", "another's", 1)
        defer { for name in ["EARSHOT_NAME", "EARSHOT_NAMES"] { unsetenv(name) } }
        let (_, text) = try await self.run("env | grep ^EARSHOT_ | sort", variables)
        let lines = text.split(separator: "\n").map(String.init).filter { line in !others.contains(String(line.prefix { $0 != "=" })) }
        #expect(
            lines == [
                "EARSHOT_CONTENT_TYPE=", "EARSHOT_EVENT=message.received", "EARSHOT_FROM=bob\\n\\u{202E}", "EARSHOT_FROM_ID=",
                "EARSHOT_GROUP=", "EARSHOT_IN_REPLY_TO=", "EARSHOT_MESSAGE_ID=", "EARSHOT_NAME=a b", "EARSHOT_NAMES=another's",
                "EARSHOT_SIZE=12", "EARSHOT_SOCKET=/run/socket", "EARSHOT_TRUST=",
            ])
    }

    @Test func aPathIsOneWholeArgument() async throws {
        let place = FileManager.default.temporaryDirectory.appending(path: "handler-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: place) }
        let show = #"printf '<%s>' "$0" "$@" >'\#(place.path)'"#
        for (words, expected) in [(["x"], "<x></d/$(reboot)>"), (["{}", "a{}"], "</d/$(reboot)><a{}>")] {
            let command = try HandlerCommand(["sh", "-c", show] + words)
            #expect(try await command.run(file: "/d/$(reboot)", Self.variables) == .exited(0))
            #expect(try String(contentsOf: place, encoding: .utf8) == expected)
        }
    }

    @Test func manyEndAtOnce() async throws {
        let command = try HandlerCommand(["true"])
        await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<64 { group.addTask { (try? await command.run(Self.variables)) == .exited(0) } }
            for await isDone in group { #expect(isDone) }
        }
    }

    @Test func theRunningAreTerminatedWithTheirChildren() async throws {
        let command = try HandlerCommand(["sh", "-c", "sleep 1000 & wait"])
        async let ending = command.run(Self.variables)
        // Until it runs there is nothing to terminate.
        while command.isIdle { await Task.yield() }
        command.terminate()
        #expect(try await ending == .killed(signal: SIGTERM))
    }

    @Test func theRunningCanBeLeft() async throws {
        let command = try HandlerCommand(["sleep", "1000"])
        async let ending = command.run(Self.variables)
        while command.isIdle { await Task.yield() }
        command.terminate()
        command.leave()
        let known: Set<HandlerCommand.Ending> = [.left, .killed(signal: SIGTERM)]
        #expect(known.contains(try await ending))
    }

    @Test(arguments: [
        ("", 127), ("no-such-command", 127), ("/no/such/command", 127), ("/etc/passwd/x", 127), ("/etc/passwd", 126), ("/etc", 126),
    ])
    func aCommandThatCannotRunIsToldAtOnce(name: String, status: Int32) throws {
        let failure = #expect(throws: CommandFailure.self) { try HandlerCommand([name]) }
        #expect(failure?.status.rawValue == status)
    }

    @Test func pathIsSearchedInOrder() throws {
        #expect(throws: CommandFailure.self) { try HandlerCommand(["sh"], path: "/nowhere:/etc") }
        _ = try HandlerCommand(["sh"], path: "/nowhere:/bin")
    }

    /// A script without an interpreter is not given to a shell.
    @Test func noShellIsInvolved() async throws {
        let script = FileManager.default.temporaryDirectory.appending(path: "handler-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: script) }
        try Data("exit 0\n".utf8).write(to: script)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: script.path)
        let command = try HandlerCommand([script.path])
        await #expect(throws: CommandFailure.self) { try await command.run(Self.variables) }
    }

    @Test func aMessageBecomesVariables() {
        let message = ControlAPI.Message(
            id: "m", direction: .known(.incoming), sender: .init(id: "p", name: "bob"), body: [1, 2], contentType: "a/b",
            mode: .known(.reliable), sentAt: Date(timeIntervalSince1970: 0), state: .known(.unread),
            group: ControlAPI.GroupLabel(id: "g", name: "team"), inReplyTo: "q")
        let lines = HandlerVariables(message, trust: "trusted", socket: "s").lines
        #expect(lines.contains("EARSHOT_FROM=bob") && lines.contains("EARSHOT_TRUST=trusted") && lines.contains("EARSHOT_GROUP=team"))
        #expect(lines.contains("EARSHOT_SIZE=2") && lines.contains("EARSHOT_CONTENT_TYPE=a/b"))
        #expect(lines.contains("EARSHOT_IN_REPLY_TO=\("q" as MessageID)"))
        #expect(lines.contains("EARSHOT_MESSAGE_ID=\(message.id)") && lines.contains("EARSHOT_FROM_ID=\(message.sender.id)"))
    }
}
