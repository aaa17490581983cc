import EarshotCoding
import FoundationEssentials

/// Typed messages: the first byte chooses the content type, the rest is the body.
///
/// A value comes of the type that has the content type, or of none; it can be written again, which gives the same value and the same bytes.
enum MessageHarness: Harness {
    static func run(_ input: [UInt8]) {
        guard let choice = input.first else { return }
        let body = Array(input.dropFirst())
        let contentType = Self.contentTypes[Int(choice) % Self.contentTypes.count]
        switch MessageTypes(Everything.self, Single.self, Free.self).content(contentType, body) {
        case .value(let value as Everything): Self.check(value, named: contentType)
        case .value(let value as Single): Self.check(value, named: contentType)
        case .value(let value as Free): Self.check(value, named: contentType)
        case .value: demand(false, "a value is of a type that was named")
        case .bytes(let bytes, .otherType):
            demand(bytes == body, "what is of no type comes as it was sent")
            demand(contentType == "text/plain", "a type that was named is found")
        case .bytes(let bytes, .undecodable(let problem)):
            demand(bytes == body, "what cannot be decoded comes as it was sent")
            demand(!problem.description.isEmpty, "there is a reason")
        }
    }

    private static let contentTypes = [
        Everything.contentType, Single.contentType, Free.contentType, "Application/VND.example.single+json ; charset=utf-8", "text/plain",
    ]

    private static func check<Value: TypedMessage>(_ value: Value, named contentType: String) {
        demand(contentType.lowercased().hasPrefix(Value.contentType), "the content type alone chooses")
        do throws(JSONProblem) {
            let first = try value.encoded()
            let second = try Value(encoded: first).encoded()
            demand(first == second, "a value that is written and read is the same")
        } catch {
            demand(false, "a value that was read can be written, and read again: \(error)")
        }
    }

    /// A bit of all that a program may send.
    private struct Everything: TypedMessage {
        static let contentType = "application/vnd.example.everything+json"
        static let coding = MessageCoding(keys: .snakeCase)

        enum Level: String, Codable { case low, high }

        enum Shape: Codable {
            case circle(radius: Double)
            case box(width: Int, height: Int)
            case none
        }

        indirect enum Tree: Codable {
            case leaf
            case node([Tree])
        }

        struct Wrapper: Codable {
            let value: Int64

            init(from decoder: any Decoder) throws { self.value = try decoder.singleValueContainer().decode(Int64.self) }

            func encode(to encoder: any Encoder) throws {
                var container = encoder.singleValueContainer()
                try container.encode(self.value)
            }
        }

        var plainText: String?
        var count: UInt64?
        var small: Int8?
        var ratio: Double?
        var isOn: Bool?
        var when: Date?
        var level: Level?
        var shape: Shape?
        var tree: Tree?
        var wrapped: Wrapper?
        var lists: [[Int?]]?
        var table: [String: [String: Double]]?
    }

    private struct Single: TypedMessage {
        static let contentType = "application/vnd.example.single+json"
        static let coding = MessageCoding(dates: .millisecondsSince1970)
        var when: Date
    }

    /// Whose keys are the sender's.
    private struct Free: TypedMessage {
        static let contentType = "application/vnd.example.free+json"
        let table: [String: Int]

        init(from decoder: any Decoder) throws { self.table = try decoder.singleValueContainer().decode([String: Int].self) }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(self.table)
        }
    }
}
