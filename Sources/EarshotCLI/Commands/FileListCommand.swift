import ArgumentParser
import EarshotClient

struct FileListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List the files that are on their way or arrived.")

    @Flag(name: .long, help: "Go on, with a line for everything that happens to a file; on a terminal, progress is drawn in one line.")
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
            let events = watch ? try await client.events() : nil
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

    /// A line for each beginning and end, and one that is drawn over for all that moves in between.
    private static func draw(_ events: ControlEvents, of group: String?) async throws {
        var moving: [String: ControlAPI.Resource] = [:]
        for try await event in events {
            let isReadable = event.unreadable.isEmpty
            let event = event.value
            guard let resource = event.resource else {
                if event.type == .gap || !isReadable { try Standard.write(Render.event(event)) }
                continue
            }
            guard group == nil || group == resource.group?.id else { continue }
            moving[resource.id] = resource.state == .transferring ? resource : nil
            if event.type != .resourceProgress || resource.state != .transferring { try Standard.write(Render.event(event)) }
            guard let one = moving.values.first else {
                ProgressLine.leave()
                continue
            }
            ProgressLine.draw(name: moving.count == 1 ? one.name : Words.count(moving.count, "file"), Array(moving.values))
        }
    }
}
