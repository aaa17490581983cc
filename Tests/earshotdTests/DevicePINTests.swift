import Earshot
import EarshotClient
import NIOCore
import Testing

@testable import earshotd

/// The PIN of a LocalSend device in requests.
@Suite struct DevicePINTests {
    @Test(arguments: [(nil, nil), ("", nil), ("1", "1"), (String(repeating: "é", count: 64), String(repeating: "é", count: 64))])
    func aPINHasUpTo64Characters(_ pin: String?, _ checked: String?) throws {
        #expect(try DevicePIN.checked(pin) == checked)
        #expect(throws: APIProblem.self) { try DevicePIN.checked((pin ?? "") + String(repeating: "1", count: 65)) }
    }

    @Test func aMessageCarriesIt() throws {
        var reader = MessageRequestReader()
        let draft = try reader.draft(ByteBuffer(string: #"{"to":["phone"],"body":"hi","pin":"123456"}"#))
        #expect(draft.pin == "123456")
        #expect(try reader.draft(ByteBuffer(string: #"{"to":["phone"],"body":"hi"}"#)).pin == nil)
    }
}
