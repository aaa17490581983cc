import EarshotCore
import FoundationEssentials
import NIOCore

/// Converts messages to JSON and back.
enum MessageCoding {
    /// Decodes a message.
    /// - Throws: a refusal for the sender: `invalid`, or `tooLarge` for an offer with too many files or a body with too many values.
    static func decode<Message: Decodable>(_ type: Message.Type, from buffer: ByteBuffer) throws(DeviceRefusal) -> Message {
        guard Self.marks(in: buffer) <= LocalSendLimits.jsonMarks else { throw .tooLarge }
        do {
            return try JSONDecoder().decode(type, from: Data(buffer.readableBytesView))
        } catch is TooManyFiles {
            throw .tooLarge
        } catch {
            throw .invalid
        }
    }

    /// Returns the number of commas, colons, and opening brackets and braces outside of strings. The decoder's memory depends on it.
    static func marks(in buffer: ByteBuffer) -> Int {
        buffer.withUnsafeReadableBytes { bytes in
            var count = 0
            var isInString = false
            var isEscaped = false
            for byte in bytes {
                if isEscaped {
                    isEscaped = false
                    continue
                }
                switch byte {
                case UInt8(ascii: "\""): isInString.toggle()
                case UInt8(ascii: "\\"): isEscaped = isInString
                case UInt8(ascii: ","), UInt8(ascii: ":"), UInt8(ascii: "["), UInt8(ascii: "{"): count += isInString ? 0 : 1
                default: break
                }
            }
            return count
        }
    }

    /// Encodes a message. Our messages contain texts and integers only, which JSON always represents.
    static func encode(_ message: some Encodable) -> ByteBuffer {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return ByteBuffer(bytes: (try? encoder.encode(message)) ?? Data())
    }
}
