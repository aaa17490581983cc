import EarshotClient
import Testing

extension LAN {
    /// If a parent has closed standard input, output or error, as cron and init scripts do, neither program uses its own sockets in their
    /// place.
    @Suite struct ClosedDescriptors {
        private func run(_ script: String, _ daemon: Daemon) async throws -> Outcome {
            try await Running(
                [Laboratory.script, "host", "exec", daemon.host, "--", "/bin/sh", "-c", script],
                environment: [
                    "EARSHOT_SOCKET": daemon.socket, "earshot": "\(Laboratory.binaries)/earshot",
                    "earshotd": "\(Laboratory.binaries)/earshotd",
                ], directory: daemon.place
            ).outcome()
        }

        /// A command that waits for something to print ends as with SIGPIPE when its reader closes, although nothing is printed.
        @Test func watchersEndWithTheirReader() async throws {
            try await Laboratory.run { laboratory in
                let alice = try await laboratory.daemon("alice")
                try await alice.expect(0, "group", "create", "team")
                for command in [
                    "peers --watch --json", "events", "invitations --watch --json", "file list --watch --json", "receive --follow",
                ] {
                    let outcome = try await self.run("{ timeout 30 $earshot \(command); echo $? >status; } | true; cat status", alice)
                    #expect(outcome.output == "141\n", "\(command): \(outcome)")
                }
                let shown = try await self.run(
                    "{ timeout 30 $earshot group show team --watch; echo $? >status; } | head -n 1; cat status", alice)
                #expect(shown.output.hasSuffix("\n141\n"), "\(shown)")
            }
        }

        @Test func theCommandLine() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                try await bob.expect(0, "send", "alice", "one")
                let cases: [(script: String, status: Int32)] = [
                    ("$earshot status >&-", 74), ("$earshot receive >&-", 74), ("$earshot send bob - <&-", 66),
                    ("$earshot stream open bob s <&-", 74), ("$earshot send bob hello <&- >&-", 0),
                ]
                for (script, status) in cases {
                    let outcome = try await self.run(script, alice)
                    #expect(outcome.status == status && outcome.output.isEmpty, "\(script): \(outcome)")
                    if status != 0 { #expect(outcome.errors.contains("bad file descriptor"), "\(script): \(outcome)") }
                }
                #expect(try await self.run("$earshot send bob there <&- >&- 2>&-", alice).status == 0)
                #expect(try await bob.receive(2).map { String(decoding: $0.body, as: UTF8.self) } == ["hello", "there"])
                let read = try await alice.receive(1).map { String(decoding: $0.body, as: UTF8.self) }
                #expect(read == ["one"], "what could not be written is not read")
            }
        }

        @Test func theDaemonOpensItsClosedDescriptors() async throws {
            try await Laboratory.run { laboratory in
                let alice = try await laboratory.daemon("alice")
                #expect(try await alice.stop() == 0)
                let daemon = "\(Laboratory.binaries)/earshotd --name alice --discovery none --state-directory state --socket socket"
                let process = try laboratory.start(on: "alice", ["/bin/sh", "-c", "cd \(alice.place) && exec \(daemon) <&- >&- 2>&-"])
                try await eventually("it answers") { try await alice.earshot("status").status == 0 }
                for number in 0...2 {
                    let leads = try await self.run("readlink /proc/\(process.pid)/fd/\(number)", alice).output
                    #expect(leads == "/dev/null\n")
                }
                try await alice.expect(0, "peers")
            }
        }

        /// If the limit on files or threads is too low, both programs report that, and do not end by a signal.
        @Test func limitsThatAreTooLowAreReported() async throws {
            try await Laboratory.run { laboratory in
                let alice = try await laboratory.daemon("alice")
                for command in ["$earshot status", "$earshotd --discovery none --state-directory other --socket other.sock"] {
                    for limit in [16, 20] {
                        let outcome = try await self.run("ulimit -n \(limit); \(command)", alice)
                        #expect(outcome.status == 1 && outcome.errors.contains("raise the limit: ulimit -n"), "\(command): \(outcome)")
                    }
                }
                #expect(try await self.run("ulimit -n 64; $earshot status", alice).status == 0)
            }
        }

        /// A full disk is not a closed descriptor, but can make a missing backup look complete in the same way.
        @Test func theDaemonsCommandsOnAFullDisk() async throws {
            try await Laboratory.run { laboratory in
                let alice = try await laboratory.daemon("alice")
                for command in ["identity export", "identity show", "identity show --json", "--check-config"] {
                    let outcome = try await self.run("$earshotd \(command) --state-directory \(alice.place)/state >/dev/full", alice)
                    #expect(outcome.status == 74, "\(command): \(outcome)")
                    #expect(outcome.errors == "earshotd: cannot write standard output: no space left on device\n")
                }
            }
        }
    }
}
