import ArgumentParser
import EarshotClient
import EarshotSafety

struct FileCancelCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "cancel", abstract: "Cancel a file transfer, in either direction.")

    @Argument(
        help: ArgumentHelp(
            "The file's id (first 4 characters suffice), its name, or the share_id (earshot file list --json) of a file sent to a group.",
            valueName: "id|name"),
        completion: .runningFile)
    var file: String
    @OptionGroup var options: GlobalOptions

    /// The transfers of one file to a group, which are cancelled for all members: found by their share id, or by name if no other transfer
    /// in progress has the name.
    private static func share(
        _ text: String, in resources: [ControlAPI.Resource]
    ) throws(CommandFailure) -> (id: ShareID, name: String, group: String)? {
        let named = resources.filter { $0.shareID?.description == text.lowercased() }
        let running = (named.isEmpty ? resources.filter { !$0.isOver }.called(text, by: \.name) : named).filter { !$0.isOver }
        if let over = named.first, running.isEmpty {
            throw CommandFailure(.data, "\(over.name.escapedForDisplay) is no longer being transferred")
        }
        guard !named.isEmpty || running.count > 1, let first = running.first, let id = first.shareID,
            running.allSatisfy({ $0.shareID == id })
        else { return nil }
        return (id, first.name, first.group?.name ?? "the group")
    }

    mutating func run() async throws {
        let (options, file) = (self.options, self.file)
        try await options.withClient { client in
            let resources = try await client.resources().resources
            let running = resources.filter { !$0.isOver }
            if let share = try Self.share(file, in: resources) {
                try await client.removeShare(share.id)
                if options.json { try Standard.write(json: try await client.share(share.id).json) }
                return Standard.note("cancelled \(share.name.escapedForDisplay) for all members of \(share.group.escapedForDisplay)")
            }
            // Finished transfers are excluded: for these, the same call would delete the file.
            guard let resource = try running.named(file) else {
                if let over = resources.last(where: { $0.id.description == file.lowercased() }) ?? resources.called(file, by: \.name).last {
                    throw CommandFailure(
                        .data,
                        "\(over.name.escapedForDisplay) is no longer being transferred: it is \(Render.state(over).escapedForDisplay)")
                }
                throw CommandFailure(
                    .data, "no such file: \(file.escapedForDisplay)", hint: "list the files: earshot file list")
            }
            try await client.removeResource(resource.id)
            if options.json { try Standard.write(json: try await client.resource(resource.id).json) }
            Standard.note("cancelled \(resource.name.escapedForDisplay)")
        }
    }
}
