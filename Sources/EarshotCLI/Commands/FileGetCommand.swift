import ArgumentParser
import EarshotClient
import EarshotSafety
import EarshotTree
import NIOCore

struct FileGetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get", abstract: "Fetch files and directories that arrived, all of them unless some are named.",
        discussion: """
            Nothing is overwritten: where a name is taken, the file becomes `name (2).ext`. Prints the path of each. A directory goes to \
            standard output as a tar archive.
            """)

    @Argument(
        help: ArgumentHelp("The file's id, at least 4 characters of it, or its name.", valueName: "id|name"), completion: .fetchableFile)
    var files: [String] = []
    @Option(
        name: [.short, .long], help: ArgumentHelp("The directory to put them in, or - for standard output.", valueName: "dir|-"),
        completion: .directory)
    var output: String?
    @OptionGroup var options: GlobalOptions

    mutating func validate() throws {
        guard self.output != "" else { throw ValidationError("the directory's path is empty") }
        if self.output == "-", self.options.json { throw ValidationError("with -o - standard output is the file itself; leave out --json") }
    }

    mutating func run() async throws {
        let (options, files, output) = (self.options, self.files, self.output)
        try await options.withClient { client in
            let all = try await client.resources().value.resources
            let wanted = try files.isEmpty ? all.filter(\.isFetchable) : files.map { try Self.find($0, in: all) }
            if wanted.isEmpty { Standard.note("no files are waiting to be fetched") }
            let directory = output == "-" ? nil : try SafeDirectory(path: output ?? ".")
            // What an earlier run that was killed has left there.
            if let directory, !wanted.isEmpty { StaleParts.remove(from: directory) }
            var fetched: [ControlAPI.Resource] = []
            var failure: (any Error)?
            do {
                for resource in wanted {
                    let download = FileDownload(resource: resource, client: client)
                    let path: String
                    // Why the daemon may have it still.
                    var kept: CommandFailure?
                    if let published = resource.publishedPath, output == nil {
                        // The daemon has put it where it belongs: there is nothing to do but to say where.
                        path = published
                    } else if let directory {
                        let name = try await download.save(in: directory)
                        path = output == nil || output == "." ? name.description : directory.subject(name)
                        kept = await download.leaveSpool("is saved as \(path.escapedForDisplay)")
                    } else {
                        try await download.print()
                        continue
                    }
                    if options.json {
                        // As it was before, where the daemon may have it still or cannot be asked.
                        var row = resource
                        defer { fetched.append(row) }
                        if kept == nil { row = try await client.resource(resource.id).value }
                    } else {
                        try Standard.write(path.escapedForDisplay + "\n")
                    }
                    if let kept { throw kept }
                }
            } catch {
                ProgressLine.leave()
                failure = error
            }
            // What was fetched is said, whatever the rest came to.
            if options.json { try Standard.write(json: try ControlJSON.encode(ControlAPI.ResourceList(resources: fetched))) }
            if let failure { throw failure }
        }
    }

    private static func find(_ text: String, in all: [ControlAPI.Resource]) throws -> ControlAPI.Resource {
        if let resource = try all.filter(\.isFetchable).named(text) { return resource }
        if let resource = try all.filter({ $0.publishedPath != nil }).named(text) { return resource }
        let hint = "see which ones there are: earshot file list"
        guard let other = try all.named(text) else {
            throw CommandFailure(.data, "there is no file \(text.escapedForDisplay)", hint: hint)
        }
        let name = other.name.escapedForDisplay
        if other.direction == .outgoing { throw CommandFailure(.data, "\(name) was sent from here; there is nothing to fetch", hint: hint) }
        if !other.isOver { throw CommandFailure(.temporary, "\(name) is still on its way", hint: "watch it: earshot file list --watch") }
        let what = other.state == .completed ? "was fetched before" : "did not arrive: it is \(other.state.rawValue.escapedForDisplay)"
        throw CommandFailure(.data, "\(name) \(what)", hint: hint)
    }
}
