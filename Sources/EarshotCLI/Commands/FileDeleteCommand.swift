import ArgumentParser
import EarshotClient
import EarshotSafety

struct FileDeleteCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete", abstract: "Delete received files and directories that the daemon still holds.",
        discussion: """
            The content is deleted permanently, and the files no longer appear in the list. Copies that were fetched remain, and so do \
            files that the daemon has put into its directory of received files. To stop a transfer in progress, use earshot file cancel.
            """)

    @Argument(
        help: ArgumentHelp("The file's id (first 4 characters suffice) or its name.", valueName: "id|name"), completion: .fetchableFile)
    var files: [String] = []
    @OptionGroup var options: GlobalOptions

    mutating func validate() throws {
        guard !self.files.isEmpty else { throw ValidationError("no file given; give the ID or NAME of a received file") }
    }

    mutating func run() async throws {
        let (options, files) = (self.options, self.files)
        try await options.withClient { client in
            let all = try await client.resources().resources
            // All names are resolved before the first deletion, so that a typing error does not leave half of the work done.
            let unwanted = try files.map { text throws(CommandFailure) in try Self.find(text, in: all) }
            var deleted: [ControlAPI.Resource] = []
            var failure: (any Error)?
            do {
                // The same file may be given twice, by id and by name.
                for resource in unwanted where !deleted.contains(where: { $0.id == resource.id }) {
                    try await client.removeResource(resource.id)
                    deleted.append(resource)
                    Standard.note("deleted \(resource.name.escapedForDisplay)")
                }
            } catch {
                failure = error
            }
            // The rows before deletion. Deleted files are reported even if a later deletion fails.
            if options.json { try Standard.write(json: try ControlJSON.encode(ControlAPI.ResourceList(resources: deleted))) }
            if let failure { throw failure }
        }
    }

    private static func find(_ text: String, in all: [ControlAPI.Resource]) throws(CommandFailure) -> ControlAPI.Resource {
        let resource = try all.received(text)
        guard let path = resource.publishedPath else { return resource }
        throw CommandFailure(
            .data, "\(resource.name.escapedForDisplay) is not held by the daemon: it was saved at \(path.escapedForDisplay)",
            hint: "delete it there")
    }
}
