import ArgumentParser
import EarshotClient
import EarshotSafety
import FoundationEssentials

struct ReceiveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "receive", abstract: "Print unread messages, oldest first.",
        discussion: """
            Without --follow, --count or --timeout, prints the unread messages and exits. With --timeout alone, prints the unread messages; \
            if there are none, waits for the first one. While waiting, also prints unreliable messages, which are delivered only to waiting \
            programs. With --all, prints the messages that were read too, and leaves unread messages unread.
            """)

    /// The number of messages in one request, which is the most that the daemon answers. It also bounds the answer's bytes.
    static let page = 1000

    @Flag(name: .long, help: "Keep running and print new messages.")
    var follow = false
    @Option(name: .long, help: ArgumentHelp("Only messages from this peer.", valueName: "peer"), completion: .provenPeer)
    var from: String?
    @Option(name: .long, help: ArgumentHelp("Only messages in this group.", valueName: "group"), completion: .group)
    var group: String?
    @Option(name: .long, help: ArgumentHelp("Wait until this many messages have been printed.", valueName: "n"))
    var count: Int?
    @Option(
        name: .long,
        help: ArgumentHelp(
            "Maximum time to wait, in seconds or with a unit, such as 30, 1.5s or 2min; default: no limit.", valueName: "time"))
    var timeout: Seconds?
    @Flag(name: .long, help: "Also print messages that were read, and mark none as read.")
    var all = false
    @Option(
        name: .long,
        help: ArgumentHelp("With --all, only messages received since then, such as 2h, 7d or 2026-11-21 10:00.", valueName: "time"))
    var since: PastTime?
    @Flag(name: .long, help: "Print only the bytes of the messages.")
    var raw = false
    @OptionGroup var options: GlobalOptions

    mutating func validate() throws {
        guard self.from != "" else { throw ValidationError("the peer's name is empty") }
        guard self.group != "" else { throw ValidationError("the group's name is empty") }
        if let count = self.count, count < 1 { throw ValidationError("--count is 1 or more") }
        if self.all, self.follow || self.count != nil || self.timeout != nil {
            throw ValidationError("--all prints what is there and does not wait; leave out --follow, --count and --timeout")
        }
        if self.since != nil, !self.all { throw ValidationError("--since is for messages that were read too; add --all") }
        if self.raw, self.options.json { throw ValidationError("give either --raw or --json, not both") }
    }

    mutating func run() async throws {
        let reader = MessageReader(
            from: self.from, group: self.group, limit: self.count, form: self.raw ? .raw : self.options.json ? .json : .text)
        let (follow, count, timeout) = (self.follow, self.count, self.timeout)
        let (all, since) = (self.all, self.since?.date(at: .now))
        try await self.options.withClient { client in
            if all { return try await reader.printAll(client, since: since) }
            guard follow || count != nil || timeout != nil else {
                try await reader.drain(client)
                return
            }
            if Terminal.isError { Standard.note("waiting for messages; press Ctrl-C to stop") }
            // With only a timeout, waiting ends with the first message.
            let wanted = count ?? (follow ? nil : 1)
            let printed = try await reader.wait(client, wanted: wanted, seconds: timeout?.value, follows: follow)
            let time = timeout.map { " in \(Words.seconds($0.value))" } ?? ""
            if let count, printed > 0, printed < count {
                throw CommandFailure(.temporary, "\(Words.count(printed, "message")) of \(count)\(time)")
            }
            if printed == 0 { throw CommandFailure(.temporary, "no message\(time)") }
        }
    }
}
