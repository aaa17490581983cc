import Glibc

/// The terminals of the standard streams.
enum Terminal {
    /// Whether standard output is a terminal.
    static var isOutput: Bool { isatty(STDOUT_FILENO) == 1 }
    /// Whether standard error is a terminal that can show a progress line.
    static var isError: Bool { isatty(STDERR_FILENO) == 1 && Self.environment("TERM") != "dumb" }
    /// Whether there is a terminal on which the user can be asked.
    static var canAsk: Bool { isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1 }

    /// Asks on standard error and reads a line, in lower case without surrounding blanks; empty without an answer.
    static func ask(_ question: String) -> String {
        _ = Array(question.utf8).withUnsafeBytes { Standard.write($0, to: STDERR_FILENO) }
        return (readLine() ?? "").lowercased().split(separator: " ").joined(separator: " ")
    }

    /// Whether standard output supports colours (no-color.org).
    static var hasColour: Bool {
        Self.isOutput && (Self.environment("NO_COLOR") ?? "").isEmpty && Self.environment("TERM") != "dumb"
    }

    /// The width of the terminal at the descriptor, in columns; `nil` if the descriptor is not a terminal.
    static func width(of descriptor: CInt = STDOUT_FILENO) -> Int? {
        guard isatty(descriptor) == 1 else { return nil }
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }

    static func environment(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }
    }
}
