import EarshotCore
import NIOHTTP1
import Testing

@testable import EarshotLocalSend

@Suite struct RouteTests {
    @Test func `the paths of the protocol are routes`() throws {
        #expect(try DeviceRoute(.GET, "/api/localsend/v1/info") == .info)
        #expect(try DeviceRoute(.GET, "/api/localsend/v2/info?fingerprint=x") == .info)
        #expect(try DeviceRoute(.POST, "/api/localsend/v2/register") == .register)
        #expect(try DeviceRoute(.POST, "/api/localsend/v2/prepare-upload") == .offer(pin: nil))
        #expect(try DeviceRoute(.POST, "/api/localsend/v2/cancel") == .cancel(session: nil))
        #expect(try DeviceRoute(.POST, "/api/localsend/v2/cancel?sessionId=") == .cancel(session: nil))
        #expect(try DeviceRoute(.POST, "/api/localsend/v2/cancel?sessionId=s") == .cancel(session: "s"))
        #expect(
            try DeviceRoute(.POST, "/api/localsend/v2/upload?sessionId=s&fileId=f&token=t")
                == .upload(DeviceUpload(session: "s", file: "f", token: "t")))
    }

    @Test(arguments: [
        "", "*", "/", "/api/localsend", "/api/localsend/v2/", "/api/localsend/v2/upload/", "/API/localsend/v2/info", "?", "//",
    ])
    func `other paths are unknown`(_ path: String) {
        #expect(throws: DeviceRoute.Fault.unknownPath) { try DeviceRoute(.GET, path) }
    }

    @Test func `a path takes one method`() {
        #expect(throws: DeviceRoute.Fault.method(.GET)) { try DeviceRoute(.POST, "/api/localsend/v2/info") }
        #expect(throws: DeviceRoute.Fault.method(.POST)) { try DeviceRoute(.HEAD, "/api/localsend/v2/upload") }
    }

    @Test(arguments: ["", "?", "?sessionId=s", "?sessionId=s&fileId=f&token=", "?sessionId&fileId&token"])
    func `an upload needs its parameters`(_ query: String) {
        #expect(throws: DeviceRoute.Fault.parameters) { try DeviceRoute(.POST, "/api/localsend/v2/upload" + query) }
    }

    @Test func `the parameters of an upload have a limit`() throws {
        func route(_ token: String) throws -> DeviceRoute {
            try DeviceRoute(.POST, "/api/localsend/v2/upload?sessionId=s&fileId=f&token=" + token)
        }
        let longest = String(repeating: "t", count: LocalSendLimits.idBytes)
        #expect(try route(longest) == .upload(DeviceUpload(session: "s", file: "f", token: longest)))
        #expect(throws: DeviceRoute.Fault.parameters) { try route(longest + "t") }
    }

    @Test(arguments: [
        ("1234", "1234"), ("a+b", "a b"), ("%C3%A9", "é"), ("%zz", "%zz"), ("%", "%"), ("%4", "%4"), ("%41%", "A%"), ("a=b", "a=b"),
        ("%FF", "\u{FFFD}"), ("1&pin=2", "2"), ("", ""),
    ])
    func `a query is decoded as a form`(_ query: String, _ pin: String) throws {
        #expect(try DeviceRoute(.POST, "/api/localsend/v2/prepare-upload?pin=" + query) == .offer(pin: pin))
    }

    @Test(arguments: ["", "a b+c&d=é%/?#", "1234-._~"])
    func `an encoded value is decoded to itself`(_ text: String) throws {
        #expect(try DeviceRoute(.POST, "/api/localsend/v2/prepare-upload?pin=" + DeviceRoute.encoded(text)) == .offer(pin: text))
    }
}
