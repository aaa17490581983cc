import ArgumentParser
import EarshotClient
import EarshotSafety

/// The report of an error at the end, with the process's exit status.
struct FailureReport {
    /// The text for standard output: help and version.
    let output: String?
    /// The lines for standard error; the first one begins with the program's name.
    let lines: [String]
    let status: Int32
    /// The code in `--json` output.
    let code: String
    /// The sentence of the first line and the hint, if there are any.
    let message: String?
    private let hint: String?

    init(_ error: any Error) {
        switch error {
        case let error as CommandFailure: self.init(error)
        case let error as ControlError: self.init(CommandFailure(error))
        case let error as FileError: self.init(CommandFailure(error.isNoSpace ? .io : .cannotCreate, error.description))
        case let error as NameRejected: self.init(CommandFailure(.data, error.description))
        case let error as ProcessLimitError: self.init(CommandFailure(.failure, error.description))
        case is CancellationError: self.init(CommandFailure(.failure, "cancelled", code: "cancelled"))
        default: self.init(parsing: error)
        }
    }

    private init(_ failure: CommandFailure) {
        self.output = nil
        self.status = failure.status.rawValue
        self.lines = failure.message.map { ["earshot: \($0)"] + (failure.hint.map { [$0] } ?? []) } ?? []
        (self.code, self.message, self.hint) = (failure.code, failure.message, failure.hint)
    }

    /// Creates the report of an error of the argument parser: help and version, which are not errors, and misuse.
    private init(parsing error: any Error) {
        let code = EarshotCommand.exitCode(for: error)
        let text = EarshotCommand.fullMessage(for: error)
        guard !code.isSuccess else {
            self.output = text.isEmpty ? nil : text + "\n"
            self.lines = []
            self.status = ExitStatus.done.rawValue
            (self.code, self.message, self.hint) = (ExitStatus.done.code, nil, nil)
            return
        }
        self.output = nil
        self.status = code == .validationFailure ? ExitStatus.usage.rawValue : code.rawValue
        self.lines = Self.usage(message: EarshotCommand.message(for: error), full: text)
        self.code = ExitStatus.usage.code
        self.message = self.lines.first.map { String($0.dropFirst("earshot: ".count)) }
        self.hint = self.lines.last
    }

    /// The parser's message in our style: a lower-case sentence, then where to read more.
    static func usage(message: String, full: String) -> [String] {
        let sentence = message.split(separator: "\n").first.map(String.init) ?? "wrong usage"
        var text = sentence.prefix(1).lowercased() + sentence.dropFirst()
        if text.hasPrefix("error: ") { text.removeFirst(7) }
        if text.hasSuffix(".") { text.removeLast() }
        // "  See 'earshot peers --help' for more information."
        let help = full.split(separator: "\n").reversed().lazy
            .compactMap { line in line.contains("--help' for more") ? line.split(separator: "'").dropFirst().first.map(String.init) : nil }
            .first
        return ["earshot: \(text.escapedForDisplay)", "for help: \(help ?? "earshot --help")"]
    }

    /// The document that `--json` prints instead of the lines.
    private struct Document: Encodable {
        struct Failure: Encodable {
            let code: String
            let message: String?
            let hint: String?
            let exitStatus: Int32

            private enum CodingKeys: String, CodingKey {
                case code, message, hint
                case exitStatus = "exit_status"
            }
        }

        let error: Failure
    }

    /// One JSON document; `nil` for help and version.
    var json: [UInt8]? {
        guard self.status != ExitStatus.done.rawValue else { return nil }
        return try? ControlJSON.encode(
            Document(error: .init(code: self.code, message: self.message, hint: self.hint, exitStatus: self.status)))
    }

    /// Whether `--json` is among the arguments, even if the command cannot be parsed.
    static func isJSON(_ arguments: [String]) -> Bool { arguments.prefix { $0 != "--" }.contains("--json") }

    /// Prints the report, as one line of JSON if requested, and returns the exit status.
    func tell(asJSON: Bool = false) -> Int32 {
        ProgressLine.leave()
        if let output = self.output {
            do {
                try Standard.write(output)
            } catch {
                return FailureReport(error).tell(asJSON: asJSON)
            }
        }
        if asJSON, let json = self.json {
            Standard.say(String(decoding: JSONText.escaped(json), as: UTF8.self))
        } else {
            for line in self.lines { Standard.say(line) }
        }
        return self.status
    }
}
