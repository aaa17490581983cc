import ArgumentParser
import EarshotControl

struct FileListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List the files that are on their way or arrived.")

    @Flag(name: .long, help: "Go on, with a line for everything that happens to a file; on a terminal, progress is drawn in one line.")
    var watch = false
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let (options, watch) = (self.options, self.watch)
        try await options.withClient { client in
            let events = watch ? try await client.events() : nil
            if !(watch && options.json) {
                let resources = try await client.resources()
                if options.json {
                    try Standard.write(json: resources.json)
                } else {
                    try Render.resources(resources.value.resources).show(empty: "no files")
                }
            }
            guard let events else { return }
            guard !options.json, Terminal.isOutput, Terminal.isError else {
                return try await events.show(json: options.json) { $0.resource != nil }
            }
            try await Self.draw(events)
        }
    }

    /// A line for each beginning and end, and one that is drawn over for all that moves in between.
    private static func draw(_ events: ControlEvents) async throws {
        var moving: [String: ControlAPI.Resource] = [:]
        try await events.forEach { event in
            let isReadable = event.unreadable.isEmpty
            let event = event.value
            guard let resource = event.resource else {
                if event.type == .gap || !isReadable { try Standard.write(Render.event(event)) }
                return true
            }
            moving[resource.id] = resource.state == .transferring ? resource : nil
            if event.type != .resourceProgress || resource.state != .transferring { try Standard.write(Render.event(event)) }
            guard let one = moving.values.first else {
                ProgressLine.leave()
                return true
            }
            ProgressLine.draw(name: moving.count == 1 ? one.name : Words.count(moving.count, "file"), Array(moving.values))
            return true
        }
    }
}
