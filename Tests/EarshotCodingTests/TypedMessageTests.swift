import EarshotCoding
import Testing

@Suite struct TypedMessageTests {
    struct Reading: TypedMessage, Hashable {
        static let contentType = "application/vnd.example.reading+json"
        var sensor: String
        var celsius: Double
    }

    struct Order: TypedMessage, Hashable {
        static let contentType = "Application/vnd.example.Order+json"
        static let coding = MessageCoding(keys: .snakeCase)
        var itemCount: Int
    }

    let types = MessageTypes(Reading.self, Order.self)

    @Test func theContentTypePicksTheType() throws {
        let reading = Reading(sensor: "s", celsius: 1)
        let content = self.types.content(Reading.contentType, try reading.encoded())
        #expect(content.value(as: Reading.self) == reading && content.value(as: Order.self) == nil)
        let order = Order(itemCount: 3)
        #expect(try String(decoding: order.encoded(), as: UTF8.self) == #"{"item_count":3}"#)
        // In any case, and with parameters.
        for name in ["application/vnd.example.order+json", "APPLICATION/VND.EXAMPLE.ORDER+JSON ; charset=utf-8"] {
            #expect(self.types.content(name, try order.encoded()).value(as: Order.self) == order)
        }
    }

    /// Bytes that would be a value of one type are none of it under another name.
    @Test(arguments: ["text/plain", "application/json", "", ";", "application/vnd.example.reading+json2", "\u{0}"])
    func whatHasNoTypeStaysBytes(contentType: String) throws {
        let body = try Reading(sensor: "s", celsius: 1).encoded()
        guard case .bytes(body, .otherType) = self.types.content(contentType, body) else {
            Issue.record("\(contentType) is a type")
            return
        }
    }

    @Test func whatDoesNotDecodeStaysBytes() {
        let body = Array(#"{"sensor":1}"#.utf8)
        guard case .bytes(body, .undecodable(let problem)) = self.types.content(Reading.contentType, body) else {
            Issue.record("decoded")
            return
        }
        #expect(problem.description == "`sensor` is not a string")
    }

    @Test func noTypesTakeNothing() {
        guard case .bytes([1], .otherType) = MessageTypes().content("a/b", [1]) else {
            Issue.record("decoded")
            return
        }
    }
}
