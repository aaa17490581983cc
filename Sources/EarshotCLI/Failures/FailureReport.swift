import ArgumentParser
import EarshotClient
import EarshotSafety

/// What is said about an error at the end, and the process's exit code.
struct FailureReport {
    /// Goes to standard output: help and version.
    let output: String?
    /// Go to standard error, line by line, the first one with our name before it.
    let lines: [String]
    let status: Int32
    /// The code in `--json` output.
    let code: String
    /// The sentence of the first line, and what to do, where there are any.
    private let message: String?
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

    /// What the argument parser throws: help and version, which are no errors, and misuse.
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

    /// The parser's words in our voice: a lower-case sentence, then where to read more.
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

    /// The document that `--json` prints in place of the lines.
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

    /// Whether `--json` is among the arguments, also of a command that cannot be parsed.
    static func isJSON(_ arguments: [String]) -> Bool { arguments.prefix { $0 != "--" }.contains("--json") }

    /// Says it, as one line of JSON where that was asked for, and returns the exit code.
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
