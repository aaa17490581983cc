import ArgumentParser
import EarshotClient
import EarshotSafety

struct GroupShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "show", abstract: "List the members of a group.")

    @Argument(help: .group, completion: .group)
    var group: String
    @Flag(name: .long, help: "Keep running and print the list again after each change, until this machine leaves the group.")
    var watch = false
    @OptionGroup var options: GlobalOptions

    mutating func run() async throws {
        let (options, name, watch) = (self.options, self.group, self.watch)
        try await options.withClient { client in
            let events = watch ? try await client.watch() : nil
            let group = try await client.group(name)
            try Self.show(group.value, json: options.json ? group.json : nil)
            guard let events else { return }
            Standard.endWithReader()
            for try await event in events {
                if let changed = event.group, changed.id == group.value.id {
                    try Self.show(changed, json: options.json ? try ControlJSON.encode(changed) : nil)
                } else if event.type == .gap || !event.unreadable.isEmpty {
                    do {
                        let now = try await client.group(group.value.id)
                        try Self.show(now.value, json: options.json ? now.json : nil)
                    } catch let error as ControlError where error.isOutage {
                        // After an outage, the next event is a gap again.
                        continue
                    }
                }
                guard event.type == .groupLeft, event.groupID == group.value.id else { continue }
                let reason = event.reason ?? "left"
                Standard.note("this machine is no longer in the group: \(reason.escapedForDisplay)")
                return
            }
        }
    }

    private static func show(_ group: ControlAPI.Group, json: [UInt8]?) throws {
        if let json { return try Standard.write(json: json) }
        try Standard.write(Render.groupHead(group))
        try Render.members(of: group).show(empty: "no members yet: the inviter has not admitted this machine")
    }
}
