import EarshotCore
import FoundationEssentials
import NIOCore

/// Converts messages to JSON and back.
enum MessageCoding {
    /// Decodes a message.
    /// - Throws: a refusal for the sender: `invalid`, or `tooLarge` for an offer with too many files.
    static func decode<Message: Decodable>(_ type: Message.Type, from buffer: ByteBuffer) throws(DeviceRefusal) -> Message {
        do {
            return try JSONDecoder().decode(type, from: Data(buffer.readableBytesView))
        } catch is TooManyFiles {
            throw .tooLarge
        } catch {
            throw .invalid
        }
    }

    /// Encodes a message. Our messages contain texts and integers only, which JSON always represents.
    static func encode(_ message: some Encodable) -> ByteBuffer {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return ByteBuffer(bytes: (try? encoder.encode(message)) ?? Data())
    }
}
