import ArgumentParser
import EarshotClient
import EarshotSafety
import EarshotTree
import Glibc
import NIOCore

struct FileGetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get", abstract: "Fetch received files and directories: the named ones, or all.",
        discussion: """
            Files whose names begin with a dot are fetched only if they are named, or with --hidden: a program may act on such a file \
            merely because it is there, as a shell does on .bashrc. Existing files are never overwritten: if the name is taken, the file \
            is saved as `name (2).ext`. A file that its sender put into a folder is saved in that folder, which is created. Prints the path of each file. A file written to standard output (a directory is written as a tar \
            archive) stays with the daemon until it is fetched into a directory or deleted.
            """)

    @Argument(
        help: ArgumentHelp("The file's id (first 4 characters suffice) or its name.", valueName: "id|name"), completion: .fetchableFile)
    var files: [String] = []
    @Option(
        name: [.short, .long], help: ArgumentHelp("Save to this directory, or - for standard output.", valueName: "dir|-"),
        completion: .directory)
    var output: String?
    @Flag(name: .long, help: "Keep running and fetch new files.")
    var follow = false
    @Flag(name: .long, help: "Also fetch files whose names begin with a dot.")
    var hidden = false
    @OptionGroup var options: GlobalOptions

    mutating func validate() throws {
        guard self.output != "" else { throw ValidationError("the directory's path is empty") }
        if self.output == "-", self.options.json { throw ValidationError("with -o - standard output is the file itself; leave out --json") }
        if self.follow, !self.files.isEmpty { throw ValidationError("--follow fetches all files; leave out their names") }
        if self.follow, self.output == "-" { throw ValidationError("--follow saves each file; give a directory with -o") }
    }

    mutating func run() async throws {
        let (options, files, output, hidden) = (self.options, self.files, self.output, self.hidden)
        guard !self.follow else {
            let directory = try SafeDirectory(path: output ?? ".")
            return try await options.withClient { client in
                let source = FileHandling(client: client, command: nil, directory: directory, hidden: hidden, asJSON: options.json)
                try await source.follow(jobs: 1, retry: OnCommand.usualRetry)
            }
        }
        try await options.withClient { client in
            let all = try await client.resources().resources
            let fetchable = all.filter(\.isFetchable)
            let left = files.isEmpty && !hidden ? fetchable.filter(\.isHidden) : []
            let wanted = try files.isEmpty ? fetchable.filter { hidden || !$0.isHidden } : files.map { text in try all.received(text) }
            Self.tell(left: left)
            if wanted.isEmpty, left.isEmpty { Standard.note("no files to fetch") }
            let directory = output == "-" ? nil : try SafeDirectory(path: output ?? ".")
            // Removes the partial files of an earlier run that was killed.
            if let directory, !wanted.isEmpty { StaleParts.remove(from: directory) }
            var fetched: [ControlAPI.Resource] = []
            var failure: (any Error)?
            do {
                for resource in wanted {
                    let download = FileDownload(resource: resource, client: client)
                    let path: String
                    // Set if the daemon may still have the file.
                    var kept: CommandFailure?
                    if let published = resource.publishedPath, output == nil {
                        // The daemon has published the file: its path is printed, unless the file has been moved since.
                        guard FileStatus(path: published) != nil || errno != ENOENT else {
                            throw CommandFailure(
                                .noInput, FileError("open", published, code: ENOENT).description,
                                hint: "the daemon put it there when it arrived")
                        }
                        path = published
                    } else if let directory {
                        let place = try download.place(in: directory)
                        path = download.shown(try await download.save(in: place), in: place, below: directory)
                        kept = await download.leaveSpool("is saved as \(path.escapedForDisplay)")
                    } else {
                        try await download.print()
                        continue
                    }
                    if options.json {
                        // The row before fetching, if the daemon may still have the file or cannot be asked.
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
            // Fetched files are reported even if a later one fails.
            if options.json { try Standard.write(json: try ControlJSON.encode(ControlAPI.ResourceList(resources: fetched))) }
            if let failure { throw failure }
        }
    }

    static func tell(left: [ControlAPI.Resource]) {
        for resource in left {
            Standard.note(
                "not fetched: \(resource.shownName.escapedForDisplay) from \(resource.peerName.escapedForDisplay): its name begins with a dot"
            )
        }
        if !left.isEmpty { Standard.say("fetch such files by name, or all of them: earshot file get --hidden") }
    }
}
