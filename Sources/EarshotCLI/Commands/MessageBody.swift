import ArgumentParser
import EarshotClient
import EarshotSafety
import Glibc

/// The body of a message as a user gives it.
enum MessageBody {
    /// Returns the words as text, standard input for `-`, or the contents of a file. `peer` is the name that the user gave for the recipient.
    /// - Throws: a failure if the body cannot be read, or is too long for a message.
    static func read(_ text: [String], file: String? = nil, peer: String?) throws(CommandFailure) -> [UInt8] {
        let isText = text != ["-"] && file == nil
        let body = if isText { Array(text.joined(separator: " ").utf8) } else { try Self.read(file) }
        guard body.count <= WireLimits.messageBody else {
            throw CommandFailure(
                .data, "the message is longer than the limit of \(WireLimits.messageBody) bytes",
                hint: "send it as a file: earshot file send \((peer ?? "PEER").escapedForDisplay) PATH")
        }
        return body
    }

    /// The content type of a body for which the user gives none.
    static func contentType(of body: [UInt8]) -> String {
        // NUL is valid UTF-8, but does not occur in text.
        !body.contains(0) && String(validating: body, as: UTF8.self) != nil ? BodyCoding.textType : BodyCoding.binaryType
    }

    /// Reads one byte more than the limit, which shows that a message is too long.
    private static func read(_ path: String?) throws(CommandFailure) -> [UInt8] {
        do throws(FileError) {
            guard let path else { return try Standard.readAll(limit: WireLimits.messageBody) }
            let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)
            guard descriptor >= 0 else { throw FileError("open", path) }
            let file = OpenFile(descriptor: descriptor, subject: path)
            defer { withExtendedLifetime(file) {} }
            return try Standard.readAll(from: descriptor, subject: path, limit: WireLimits.messageBody)
        } catch {
            throw CommandFailure(.noInput, error.description)
        }
    }

    /// Checks the options that `send` and `ask` share.
    /// - Throws: `ValidationError`.
    static func check(text: [String], type: String?, timeout: Seconds?) throws {
        if text == [""] { throw ValidationError("the text is empty; an empty message can be sent with -") }
        if let type, type.isEmpty || type.utf8.count > WireLimits.contentType {
            throw ValidationError("a content type is 1 to \(WireLimits.contentType) bytes, such as text/plain")
        }
        if let timeout = timeout?.duration, timeout <= .zero || timeout > WireLimits.messageTimeout {
            throw ValidationError("--timeout is more than 0 and at most \(WireLimits.messageTimeout.components.seconds) seconds")
        }
    }
}
