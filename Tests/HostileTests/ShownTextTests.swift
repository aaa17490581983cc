import EarshotWire
import Foundation
import NIOCore
import Testing

/// Dangerous strings that a peer may send.
enum HostileText {
    /// Moves the cursor, reverses the direction, hides text, ends a line.
    static let acts = "\u{1B}[1A\u{1B}[2K\u{9B}1A\u{202E}\u{2066}\u{200B}\u{FEFF}\u{7F}\n\rforged: line\u{2028}\t\u{E0041}"
    /// The same effects without control characters, as in a valid display name.
    static let formats = "x\u{202E}\u{2066}\u{200B}\u{FEFF}\u{2028}y"
    /// Names that must never become a path.
    static let names = [
        "../../.ssh/authorized_keys", "/etc/x", "..", ".", "", "a\0b", String(repeating: "x", count: 256), "a/b", "a/", "/", "./a", "a\nb",
        "\u{1B}[1A", "\u{202E}\u{200B}", "   ", "a\u{301}/b", "\u{2F}", "a\u{9B}1A", "\r",
    ]

    /// Returns a raw scalar that would mislead a terminal or a reader of a log.
    static func acts(in text: String) -> Unicode.Scalar? {
        text.unicodeScalars.first { scalar in
            switch scalar.properties.generalCategory {
            case .control: scalar != "\n"
            case .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned: true
            default: false
            }
        }
    }
}

extension HostileTests {
    @Suite struct Shown {
        @Test("escapes and bidi in names: every field a peer fills, at every command's outputs and in the log")
        func everyOutputEscapesAPeersText() throws {
            let daemon = try VictimDaemon(settings: "[log]\nlevel = debug\n")
            let peer = try WirePeer(port: daemon.port, name: HostileText.formats).prove()
            try peer.send(.invite(Invite(id: .random(), timeoutMilliseconds: 600_000, context: Array(HostileText.acts.utf8))))
            try peer.roundTrip()
            try self.look(at: daemon, ["peers"], ["invitations"], ["status"], ["events", "--since", "0"])
            #expect(try daemon.earshot("accept", "\(peer.id)").status == 0)
            let session = try peer.next { frame -> SessionID? in
                if case .inviteAnswer(let answer) = frame, case .accepted(let session) = answer.decision { session } else { nil }
            }
            let (id, frame) = peer.message(HostileText.acts, in: session, sequence: 1)
            try peer.send(frame)
            try peer.next { frame -> Void? in
                if case .messageReceipts(let receipts) = frame, receipts.contains(where: { $0.id == id }) { () } else { nil }
            }
            // An offer with a valid file name, one with an invalid name, and one that its sender cancels with an explanation.
            for name in [HostileText.formats, HostileText.acts] {
                let id = ResourceID.random()
                try peer.send(.resource(.offer(ResourceOffer(session: session, id: id, kind: .file, size: 10, name: name))))
                let refusal = Refusal(code: .cancelled, explanation: HostileText.acts)
                try peer.next { frame -> Void? in
                    switch frame {
                    case .resource(.accept), .resource(.refuse): ()
                    default: nil
                    }
                }
                if name == HostileText.formats { try peer.send(.resource(.cancel(ResourceRefuse(id: id, refusal: refusal)))) }
            }
            try peer.roundTrip()
            try self.look(
                at: daemon, ["peers"], ["sessions"], ["file", "list"], ["receive", "--count", "1", "--timeout", "5"],
                ["invite", HostileText.formats],
                ["send", HostileText.acts, "x"], ["file", "get", HostileText.acts], ["file", "cancel", HostileText.formats],
                ["leave", HostileText.formats], ["block", HostileText.formats], ["unblock", HostileText.formats], ["doctor"])
            for line in daemon.log.split(separator: "\n") { #expect(HostileText.acts(in: String(line)) == nil, "\(line.debugDescription)") }
            #expect(daemon.isAlive)
        }

        private func look(at daemon: VictimDaemon, _ commands: [String]...) throws {
            for words in commands {
                // A watcher never ends on its own. It is stopped, and its output is checked too.
                let output = words[0] == "events" ? try daemon.watch(words) : try daemon.run(words)
                #expect(HostileText.acts(in: output) == nil, "earshot \(words[0]) shows \(output.debugDescription)")
                #expect(!output.split(separator: "\n").contains { $0.hasPrefix("forged: line") }, "earshot \(words[0]) shows a forged line")
            }
        }
    }
}
