import EarshotClient
import Foundation
import Testing

extension LAN {
    /// Directories, sent by path and as bodies.
    @Suite struct Trees {
        /// Creates a directory `tree` with unusual content: holes, links, names, permissions, times, depth, and many small files.
        private static let make = """
            set -e; umask 022; mkdir tree; cd tree
            mkdir -p empty sub/a/b/c small 'white space' "$(printf 'new\\nline')" "$(seq -s / 60)"
            echo deep > "$(seq -s / 60)/file"
            echo text > plain; : > nothing; echo secret > locked; echo tool > tool; printf 'n' > "$(printf 'new\\nline/tab\\there')"
            echo u > 'ünïcödé ☃'; echo b > "$(printf 'not\\377utf8')"
            ln -s sub/a/b there; ln -s ../../../plain sub/a/b/back; ln -s nowhere/at/all dangling; ln plain hard
            truncate -s 3G holes; printf begin | dd of=holes conv=notrunc status=none
            printf middle | dd of=holes bs=1M seek=2000 conv=notrunc status=none
            truncate -s 1G hollow
            head -c 9M /dev/urandom > large
            i=0; while [ $i -lt 100 ]; do mkdir small/$i; seq 100 | (cd small/$i; split -l 1 -a 2 - f); i=$((i + 1)); done
            chmod 000 locked; chmod 6755 tool; chmod 1777 empty; chmod 400 nothing; chmod 555 sub/a/b
            find . -depth -exec touch -h -d '2011-11-11 11:11:11.123456789 UTC' {} +
            touch -d '1969-07-20 20:17:40.5 UTC' plain; touch -d '2040-01-01 UTC' .
            """

        /// All attributes of a directory's entries that must arrive, one line per entry.
        private static let list = """
            cd "$1"; find . -printf '%P %y %m %s %T@ %l\\0' | tr '\\n\\0' '?\\n' | sed -E 's/ d ([0-7]+) [0-9]+ / d \\1 /' | LC_ALL=C sort
            find . -type f -size -20M -print0 | LC_ALL=C sort -z | xargs -0 md5sum -z | tr '\\n\\0' '?\\n'
            du -s . | cut -f1 | awk '{ print ($1 < 200000) }'
            """

        private static func shell(_ script: String, _ arguments: String..., at daemon: Daemon) async throws -> Outcome {
            let outcome = try await Running(["/bin/sh", "-c", script, "sh"] + arguments, directory: daemon.place).outcome()
            try #require(outcome.status == 0, "\(outcome)")
            return outcome
        }

        @Test func everythingOddArrivesAsItWas() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                _ = try await Self.shell(Self.make, at: alice)
                _ = try await Self.shell("ln -s tree linked", at: alice)
                // These bits must not arrive: they would run programs as another user.
                _ = try await Self.shell("cp -a tree expected; cd expected; chmod 755 tool; chmod 777 empty", at: alice)
                _ = try await Self.shell("cd expected; touch -r ../tree/. .; touch -r ../tree/empty empty", at: alice)
                let expected = try await Self.shell(Self.list, "expected", at: alice).output

                // The daemon reads the directory itself. For a link, the command line reads it, and sends the bytes under the link's name.
                try await alice.expect(0, "file", "send", "bob", "tree/", "linked")
                let rows = try await bob.files()
                #expect(rows.map(\.name) == ["tree", "linked"])
                #expect(rows.allSatisfy { $0.kind == .directory && $0.state == .completed && $0.size < 16 << 20 })
                #expect(rows.first?.size == rows.last?.size)

                // curl gets the tree as an archive. Then the tree is fetched, and nothing is overwritten.
                let id = try #require(rows.first).id.description
                let archive = "curl -sS --unix-socket socket -o archive.tar http://localhost/v1/resources/\(id)/content"
                _ = try await Self.shell("\(archive) && mkdir t && tar -xpf archive.tar --delay-directory-restore -C t", at: bob)
                #expect(try await Self.shell(Self.list, "t/tree", at: bob).output == expected)
                _ = try await Self.shell("mkdir got got/tree; touch got/tree/mine", at: bob)
                #expect(try await bob.expect(0, "file", "get", "-o", "got").output == "got/tree (2)\ngot/linked\n")
                for name in ["got/tree (2)", "got/linked"] {
                    #expect(try await Self.shell(Self.list, name, at: bob).output == expected, "\(name)")
                }
                #expect(try await Self.shell("find state/spool -mindepth 2; ls -A got", at: bob).output == "linked\ntree\ntree (2)\n")
            }
        }

        @Test func whatLeadsOutOrIsNoFileIsRefused() async throws {
            try await Laboratory.run { laboratory in
                let (alice, bob) = try await laboratory.session()
                _ = try await Self.shell("mkdir -p pipe/sub out up; mkfifo pipe/sub/p; ln -s /etc/passwd out/l; ln -s ../x up/l", at: alice)
                for (name, entry) in [("pipe", "pipe/sub/p"), ("out", "out/l"), ("up", "up/l")] {
                    let outcome = try await alice.earshot("file", "send", "bob", name)
                    #expect(outcome.status != 0, "\(outcome)")
                    #expect(outcome.errors.contains(entry), "\(outcome)")
                }
                #expect(try await bob.files().isEmpty)
            }
        }
    }
}
