import ArgumentParser
import EarshotControl
import EarshotSafety
import NIOCore

struct FileGetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get", abstract: "Fetch files that arrived, all of them unless some are named.",
        discussion: "Nothing is overwritten: where a name is taken, the file becomes `name (2).ext`. Prints the path of each.")

    @Argument(
        help: ArgumentHelp("The file's id, at least 4 characters of it, or its name.", valueName: "id|name"), completion: .fetchableFile)
    var files: [String] = []
    @Option(
        name: [.short, .long], help: ArgumentHelp("The directory to put them in, or - for standard output.", valueName: "dir|-"),
        completion: .directory)
    var output = "."
    @OptionGroup var options: GlobalOptions

    mutating func validate() throws {
        guard !self.output.isEmpty else { throw ValidationError("the directory's path is empty") }
        if self.output == "-", self.options.json { throw ValidationError("with -o - standard output is the file itself; leave out --json") }
    }

    mutating func run() async throws {
        let (options, files, output) = (self.options, self.files, self.output)
        try await options.withClient { client in
            let all = try await client.resources().value.resources
            let wanted = try files.isEmpty ? all.filter(\.isFetchable) : files.map { try Self.find($0, in: all) }
            guard !wanted.isEmpty else { return Standard.note("no files are waiting to be fetched") }
            let directory = output == "-" ? nil : try SafeDirectory(path: output)
            for resource in wanted {
                guard let directory else {
                    try await Self.print(resource, client)
                    continue
                }
                let name = try await Self.save(resource, in: directory, client)
                if options.json {
                    try Standard.write(json: try await client.resource(resource.id).json)
                } else {
                    try Standard.write((output == "." ? name.description : directory.subject(name)).escapedForDisplay + "\n")
                }
            }
        }
    }

    private static func find(_ text: String, in all: [ControlAPI.Resource]) throws -> ControlAPI.Resource {
        if let resource = try all.filter(\.isFetchable).named(text) { return resource }
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

    /// Into the directory under its own name or a numbered one; it leaves the spool when it is safely on disk.
    private static func save(
        _ resource: ControlAPI.Resource, in directory: SafeDirectory, _ client: ControlClient
    ) async throws -> SafeName {
        let name = try Self.name(of: resource)
        let file = try TemporaryFile(in: directory)
        let content = try await client.content(of: resource.id)
        var written: UInt64 = 0
        try await content.forEach { piece in
            let offset = written
            try piece.withUnsafeReadableBytes { (bytes) throws(FileError) in try file.file.write(bytes, at: offset) }
            written += UInt64(piece.readableBytes)
            ProgressLine.draw(name: resource.name, transferred: written, size: resource.size, rate: 0)
        }
        ProgressLine.leave()
        try Self.check(resource, written)
        guard let published = try file.publish(as: name, onConflict: .rename) else {
            throw CommandFailure(.cannotCreate, "cannot create \(directory.subject(name).escapedForDisplay)")
        }
        try await client.dropContent(of: resource.id)
        return published
    }

    private static func name(of resource: ControlAPI.Resource) throws -> SafeName {
        do {
            return try SafeName(resource.name)
        } catch {
            throw CommandFailure(
                .data, error.description,
                hint: "or write it under a name of your own: earshot file get \(Words.short(resource.id)) -o - > FILE"
            )
        }
    }

    /// To standard output; it leaves the spool when all of it was taken.
    private static func print(_ resource: ControlAPI.Resource, _ client: ControlClient) async throws {
        var written: UInt64 = 0
        try await client.content(of: resource.id).forEach { piece in
            try Standard.write(Array(piece.readableBytesView))
            written += UInt64(piece.readableBytes)
        }
        try Self.check(resource, written)
        try await client.dropContent(of: resource.id)
    }

    private static func check(_ resource: ControlAPI.Resource, _ written: UInt64) throws {
        guard written == resource.size else {
            throw CommandFailure(
                .io, "\(resource.name.escapedForDisplay) came out \(written) bytes long instead of \(resource.size)",
                hint: "it is still with the daemon; try again")
        }
    }
}
