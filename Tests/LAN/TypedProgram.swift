import Foundation

/// A program on a host that reads lines from its standard input, such as a chat.
final class TypedProgram {
    let name: String
    let running: Running
    private let input: FileHandle

    /// Starts a program that is built with the tests, under a name; all programs of a test share a room. With `isArchived`, a program of
    /// MultipeerConnectivity is the same peer each time.
    init(_ program: String, _ name: String, on host: String, _ laboratory: Laboratory, isArchived: Bool = false) throws {
        self.name = name
        let input = "\(laboratory.place)/\(UUID().uuidString).in"
        _ = FileManager.default.createFile(atPath: input, contents: nil)
        self.input = try FileHandle(forWritingTo: URL(fileURLWithPath: input))
        // The program replaces the shell, so that signals reach it. `peer-chat` has only one room.
        let state = "\(laboratory.place)/\(name)"
        let variables = isArchived ? ["XDG_STATE_HOME=\(state)", "MULTIPEER_ARCHIVE=\(state).peer"] : []
        self.running = try laboratory.start(
            on: host,
            ["env"] + variables + [
                "bash", "-c", #"exec "$0" "$1" ${2:+"$2"} < <(exec tail --pid=$$ -n +1 -f "$3")"#,
                "\(Laboratory.binaries)/\(program)", name, program == "peer-chat" ? "" : laboratory.serviceType, input,
            ])
    }

    func type(_ line: String) throws { try self.input.write(contentsOf: Data("\(line)\n".utf8)) }

    var lines: [Substring] { self.running.outputSoFar().split(separator: "\n") }

    func has(_ line: String, times: Int = 1) async throws {
        try await eventually(within: .seconds(40), "\(self.name) reads \"\(line)\"", instead: { "\(self.lines)" }) {
            self.lines.count { $0 == line } >= times
        }
    }
}
