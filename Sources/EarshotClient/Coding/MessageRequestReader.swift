package import EarshotCoding
import EarshotWire
package import NIOCore

/// Reads bodies of `POST /v1/messages`, and its lines with NDJSON. Plain JSON is read without a decoder, which takes all other JSON.
package struct MessageRequestReader: Sendable {
    /// The recipients of the last plain request, which the next one mostly repeats.
    private var recipients: [[UInt8]] = []
    private var to = ControlAPI.MessageRequest.Recipients.all

    /// Creates a reader for requests in their order.
    package init() {}

    /// Returns the request in a body or a line.
    package mutating func read(_ line: ByteBuffer) throws(JSONProblem) -> ControlAPI.MessageRequest {
        let plain = line.withUnsafeReadableBytes { bytes in
            var json = PlainJSON(bytes)
            return self.read(&json)
        }
        if let plain { return plain }
        return try ControlJSON.decode(ControlAPI.MessageRequest.self, from: line.readableBytesView)
    }

    /// The fields that a request may have, each once.
    private struct Fields {
        var to: ControlAPI.MessageRequest.Recipients?
        var group: String?
        var body: [UInt8]?
        var contentType: String?
        var mode: ControlAPI.Message.Mode?
        var messageID: MessageID?
        var queue: Bool?
        var inReplyTo: MessageID?

        /// `nil` if both `to` and `group` are given, or neither; the decoder reports the fault.
        var recipients: ControlAPI.MessageRequest.Recipients? {
            switch (self.to, self.group) {
            case (let to?, nil): to
            case (nil, let group?): .group(group)
            case (nil, nil), (_?, _?): nil
            }
        }
    }

    private mutating func read(_ json: inout PlainJSON) -> ControlAPI.MessageRequest? {
        guard json.take(UInt8(ascii: "{")) else { return nil }
        var fields = Fields()
        repeat {
            guard let key = json.string(), json.take(UInt8(ascii: ":")), self.read(key, of: &json, into: &fields) else { return nil }
        } while json.take(UInt8(ascii: ","))
        guard json.take(UInt8(ascii: "}")), json.isAtEnd(), let to = fields.recipients, let body = fields.body else { return nil }
        return ControlAPI.MessageRequest(
            to: to, body: body, contentType: fields.contentType ?? BodyCoding.textType, mode: fields.mode ?? .reliable,
            messageID: fields.messageID, queue: fields.queue, inReplyTo: fields.inReplyTo)
    }

    private mutating func read(_ key: [UInt8], of json: inout PlainJSON, into fields: inout Fields) -> Bool {
        if key.elementsEqual("to".utf8), fields.to == nil {
            fields.to = self.recipients(of: &json)
            return fields.to != nil
        } else if key.elementsEqual("group".utf8), fields.group == nil {
            fields.group = json.string().map { String(decoding: $0, as: UTF8.self) }
            return fields.group != nil
        } else if key.elementsEqual("body".utf8), fields.body == nil {
            fields.body = json.string()
            return fields.body != nil
        } else if key.elementsEqual("content_type".utf8), fields.contentType == nil {
            fields.contentType = json.string().map { String(decoding: $0, as: UTF8.self) }
            return fields.contentType != nil
        } else if key.elementsEqual("mode".utf8), fields.mode == nil {
            fields.mode = json.string().flatMap { ControlAPI.Message.Mode(rawValue: String(decoding: $0, as: UTF8.self)) }
            return fields.mode != nil
        } else if key.elementsEqual("message_id".utf8), fields.messageID == nil {
            fields.messageID = json.string().flatMap { MessageID(String(decoding: $0, as: UTF8.self)) }
            return fields.messageID != nil
        } else if key.elementsEqual("queue".utf8), fields.queue == nil {
            fields.queue = json.bool()
            return fields.queue != nil
        } else if key.elementsEqual("in_reply_to".utf8), fields.inReplyTo == nil {
            fields.inReplyTo = json.string().flatMap { MessageID(String(decoding: $0, as: UTF8.self)) }
            return fields.inReplyTo != nil
        }
        return false
    }

    private mutating func recipients(of json: inout PlainJSON) -> ControlAPI.MessageRequest.Recipients? {
        guard json.take(UInt8(ascii: "[")) else { return json.string()?.elementsEqual("all".utf8) == true ? .all : nil }
        var names: [[UInt8]] = []
        repeat {
            guard let name = json.string() else { return nil }
            names.append(name)
        } while json.take(UInt8(ascii: ","))
        guard json.take(UInt8(ascii: "]")) else { return nil }
        if names != self.recipients {
            self.recipients = names
            self.to = .peers(names.map { String(decoding: $0, as: UTF8.self) })
        }
        return self.to
    }
}
