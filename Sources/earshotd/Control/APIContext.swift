internal import Earshot
internal import Hummingbird
internal import HummingbirdCore
internal import Logging
internal import NIOCore

/// The context of a request: its caller and its connection.
struct APIContext: RequestContext {
    /// The values that a context is made from.
    struct Source: RequestContextSource {
        let channel: any Channel
        let caller: Caller
        let isHead: Bool
        let moved: MovedConnections
        let logger: Logger
    }

    var coreContext: CoreRequestContextStorage
    let caller: Caller
    let channel: any Channel
    /// Whether the request is a HEAD, so that nobody reads the answer's body.
    let isHead: Bool
    /// The connections that have left the server's event loops.
    let moved: MovedConnections

    init(source: Source) {
        self.coreContext = .init(source: source)
        self.caller = source.caller
        self.channel = source.channel
        self.isHead = source.isHead
        self.moved = source.moved
    }

    /// Returns a parameter of the path, percent-decoded.
    /// - Throws: `invalid-parameter` if it is empty or malformed.
    func parameter(_ name: String) throws(APIProblem) -> String {
        guard let raw = self.parameters[Substring(name)], let text = String(raw).percentDecoded, !text.isEmpty else {
            throw APIProblem(.invalidParameter, "the path's {\(name)} is empty or not percent-encoded UTF-8")
        }
        return text
    }

    /// Returns the path's `id` parameter. `what` names the kind of object in the error.
    func identifier<ID: LosslessStringConvertible>(_ what: String) throws(APIProblem) -> ID {
        let text = try self.parameter("id")
        guard let id = ID(text) else { throw APIProblem(.invalidParameter, "the id of \(what) is a UUID such as \(Self.exampleID)") }
        return id
    }

    static let exampleID = "0b0e8f6e-4f0e-4c6b-9d0c-6f1f6a2b7a11"
}

extension String {
    /// The text without percent-encoding (RFC 3986 section 2.1); `nil` if the encoding is malformed or the result is not UTF-8.
    var percentDecoded: String? {
        guard self.utf8.contains(UInt8(ascii: "%")) else { return self }
        var bytes: [UInt8] = []
        var rest = self.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst(), let low = rest.popFirst(),
                let high = Character(Unicode.Scalar(high)).hexDigitValue, let low = Character(Unicode.Scalar(low)).hexDigitValue
            else { return nil }
            bytes.append(UInt8(high << 4 | low))
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
