import ArgumentParser
import EarshotClient
import EarshotSafety
import EarshotTree
import Glibc

struct FileSendCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "send", abstract: "Send files and directories, and wait until the receiver has stored them.",
        usage: """
            earshot file send PEER PATH... [--to PEER]... [--exclude PATTERN]... [--queue] [--digest DIGEST] [--limit RATE]
            earshot file send --group GROUP PATH...
            """,
        discussion: """
            If the connection is lost or the receiver restarts, the transfer resumes when both are back. After a restart of this side, \
            it resumes if the daemon runs as this user, or with --queue. A directory that is sent through the system's daemon resumes \
            only with --queue. Ctrl-C cancels the transfer on both sides, unless --queue was given.

            A file keeps its modification time, its holes and its executable bit. A directory is sent as a whole: permissions, times, \
            symbolic links, empty directories and holes are kept. Hard links become copies, and set-user-id, set-group-id and sticky \
            bits are dropped. A directory is refused if it contains links that lead out of it, named pipes, sockets or devices.

            With --exclude, matching entries of a directory are not sent, and excluded directories are not read. Patterns are those of \
            tar(1): *, ? and [...] also match slashes, and a pattern may match from any component of the path on. Such a directory \
            resumes only with --queue.
            """)

    /// The digests by their names.
    enum Digest: String, ExpressibleByArgument, CaseIterable {
        case xxh3, sha256
    }

    @Argument(help: .peer, completion: .reachablePeer)
    var peer: String?
    @Argument(help: ArgumentHelp("Files and directories to send.", valueName: "path"), completion: .file())
    var paths: [String] = []
    @Option(name: .long, help: ArgumentHelp("Another recipient; may be repeated.", valueName: "peer"), completion: .reachablePeer)
    var to: [String] = []
    @Option(
        name: .long, help: ArgumentHelp("Send to all other members of this group, instead of PEER.", valueName: "group"),
        completion: .group)
    var group: String?
    @Option(
        name: .long,
        help: ArgumentHelp(
            "Leave out files and directories that match this pattern, as tar does; may be repeated.", valueName: "pattern"),
        completion: .custom { _, _, _ in [] })
    var exclude: [String] = []
    @Flag(name: .long, help: "Queue the files in the daemon, which sends them when the peer is available.")
    var queue = false
    @Option(name: .long, help: "Checksum that the receiver verifies: xxh3 (fast, the default) or sha256.")
    var digest: Digest?
    @Option(
        name: .long,
        help: ArgumentHelp("Maximum rate for each receiver, in bytes per second: 1K to 1024G, such as 10M.", valueName: "rate"))
    var limit: TransferRate?
    @Option(name: .long, help: ArgumentHelp("PIN of a LocalSend device that asks for one.", valueName: "pin"))
    var pin: String?
    @OptionGroup var options: GlobalOptions

    mutating func validate() throws {
        if let group = self.group {
            guard !group.isEmpty else { throw ValidationError("the group's name is empty") }
            guard self.to.isEmpty else { throw ValidationError("give either --group or the peers, not both") }
            // With --group no peer is named, so that all words are paths.
            self.paths = (self.peer.map { [$0] } ?? []) + self.paths
            self.peer = nil
        } else if self.peer == nil {
            throw ValidationError("no recipient given; give a PEER or --group")
        }
        guard !self.paths.isEmpty else { throw ValidationError("no file given; give the PATH of a file or directory") }
        guard !self.paths.contains("") else { throw ValidationError("the path of a file is empty") }
        guard !self.exclude.contains("") else { throw ValidationError("the pattern of --exclude is empty") }
        guard self.exclude.count <= TreeExclusions.limit else {
            throw ValidationError("more than \(TreeExclusions.limit) patterns to exclude")
        }
        guard self.exclude.allSatisfy({ $0.utf8.count <= TreeExclusions.patternBytes }) else {
            throw ValidationError("a pattern of --exclude is longer than \(TreeExclusions.patternBytes) bytes")
        }
    }

    mutating func run() async throws {
        let (options, queue, limit, pin) = (self.options, self.queue, self.limit?.bytesPerSecond, self.pin)
        let digest: ControlAPI.Resource.Digest? =
            switch self.digest {
            case .sha256: .sha256
            case .xxh3, nil: nil
            }
        let recipients = self.recipients
        // All paths are checked before the first file is sent, so that a typing error does not leave half of the work done.
        let sources = try self.sources()
        let canOpen = LocalSource.daemonCanOpen(socketPath: ControlSocket.path(given: options.socket))
        try await options.withClient { client in
            // No warning for a group: its own setting decides whether members may connect without TLS.
            if case .peers(let peers) = recipients { await ProtectionWarning(client: client).tell(of: peers) }
            var results: [FileUpload.Result] = []
            var failure: (any Error)?
            for (index, source) in sources.enumerated() where failure == nil {
                let title = sources.count > 1 ? "[\(index + 1)/\(sources.count)] \(source.name)" : source.name
                let upload = FileUpload(
                    source: source, recipients: recipients, client: client, title: title, queue: queue, digest: digest,
                    limit: limit, pin: pin)
                var sent: [FileUpload.Result] = []
                do {
                    try await upload.send(daemonCanOpen: canOpen, into: &sent)
                } catch {
                    failure = error
                }
                ProgressLine.leave()
                for result in sent { result.tell(file: source.name) }
                results += sent
            }
            // Sent files are reported even if a later one fails.
            if options.json {
                try Standard.write(json: try ControlJSON.encode(ControlAPI.ResourceList(resources: results.compactMap(\.resource))))
            }
            if let failure { throw failure }
            let worst = ExitStatus.worst(results.map(\.status))
            guard worst == .done else {
                throw CommandFailure(worst, nil, code: results.lazy.compactMap(\.failure).first { $0.status == worst }?.code)
            }
        }
    }

    /// The files and directories to send, without excluded ones.
    private func sources() throws -> [LocalSource] {
        let sources = try self.paths.map { try LocalSource($0, excluding: self.exclude) }
        for source in sources where source.isExcluded { Standard.note("left out \(source.path.escapedForDisplay)") }
        let sent = sources.filter { !$0.isExcluded }
        guard !sent.isEmpty else { throw CommandFailure(.usage, "--exclude leaves out everything") }
        return sent
    }

    private var recipients: FileUpload.Recipients {
        if let group = self.group { return .group(group) }
        return .peers((self.peer.map { [$0] } ?? []) + self.to)
    }
}
