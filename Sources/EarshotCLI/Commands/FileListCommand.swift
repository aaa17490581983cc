import ArgumentParser
import EarshotClient

struct FileListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List sent and received files, and transfers in progress.")

    @Flag(name: .long, help: "Keep running and print changes; on a terminal, show progress on one line.")
    var watch = false
    @Option(name: .long, help: ArgumentHelp("Only files of this group.", valueName: "group"), completion: .group)
    var group: String?
    @OptionGroup var options: GlobalOptions

    mutating func validate() throws {
        guard self.group != "" else { throw ValidationError("the group's name is empty") }
    }

    mutating func run() async throws {
        let (options, watch, named) = (self.options, self.watch, self.group)
        try await options.withClient { client in
            let events = watch ? try await client.watch() : nil
            let group = try await client.groupID(named)
            if !(watch && options.json) {
                let resources = try await client.resources(in: group)
                if options.json {
                    try Standard.write(json: resources.json)
                } else {
                    try Render.resources(resources.value.resources).show(empty: "no files")
                }
            }
            guard let events else { return }
            guard !options.json, Terminal.isOutput, Terminal.isError else {
                return try await events.show(json: options.json) { $0.resource.map { group == nil || group == $0.group?.id } ?? false }
            }
            try await Self.draw(events, of: group)
        }
    }

    private static func draw(_ events: ControlEvents, of group: GroupID?) async throws {
        Standard.endWithReader()
        var files = WatchedFiles(of: group)
        for try await event in events {
            for step in files.steps(after: event.value, isReadable: event.unreadable.isEmpty) {
                switch step {
                case .clear: ProgressLine.leave()
                case .print(let line): try Standard.write(line)
                case .draw(let name, let resources): ProgressLine.draw(name: name, resources)
                }
            }
        }
    }
}
