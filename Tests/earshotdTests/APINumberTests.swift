import APIDocument
import Earshot
import EarshotWire
import Foundation
import Testing

@testable import earshotd

/// Every number and time that a caller can give, at its extremes: a refusal or a success, never a fault of the daemon's, which would end it.
@Suite(.timeLimit(.minutes(5))) struct APINumberTests {
    private static let peer = PeerID(subjectPublicKeyInfo: [7]).description

    /// The numbers as they are written in JSON. Some are not numbers.
    private static let numbers = [
        "0", "-0", "-1", "1", "0.5", "1e-300", "5e-324", "-5e-324", "1e9", "1e18", "1e19", "9223372036854775807", "9223372036854775808",
        "18446744073709551615", "18446744073709551616", "1e300", "-1e300", "1.7976931348623157e308", "1e309", "-1e309", "1e999999999",
        "NaN",
        "Infinity", "-Infinity", "null", "true", "\"5\"", "[]", "{}", "00", "1.", ".5", "0x10",
        String(repeating: "9", count: 400), "0." + String(repeating: "0", count: 400) + "1",
    ]
    private static let times = [
        "0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "-0001-01-01T00:00:00Z", "-4712-01-01T12:00:00.000Z", "1969-12-31T23:59:59.999Z",
        "9999-12-31T23:59:59.999Z", "10000-01-01T00:00:00Z", "999999-01-01T00:00:00Z", "9223372036854775807-01-01T00:00:00Z",
        "2026-13-45T99:99:99Z", "2026-11-21T10:00:00+99:99", "2026-11-21T10:00:00.99999999999999999999Z", "",
    ]

    @Test func timesOfCallersAreBounded() async throws {
        try await APIServer.with(configure: { $0.now = { Date(timeIntervalSince1970: 1_800_000_000) } }) { server in
            let api = APICaller(path: server.path)
            #expect(try await api.call("PUT", "/v1/peers/\(Self.peer)/trust", json: #"{"trust":"trusted"}"#).status == 200)
            var bodies: [(method: String, target: String, json: String)] = []
            for number in Self.numbers {
                bodies += [
                    ("PUT", "/v1/peers/\(Self.peer)/trust", #"{"trust":"trusted","for_seconds":\#(number)}"#),
                    ("POST", "/v1/peers/\(Self.peer)/verification", #"{"timeout_seconds":\#(number)}"#),
                    ("POST", "/v1/invitations", #"{"peer":"\#(Self.peer)","timeout_seconds":\#(number)}"#),
                    ("POST", "/v1/messages", #"{"to":["\#(Self.peer)"],"body":"x","queue":true,"timeout_seconds":\#(number)}"#),
                ]
            }
            for number in Self.numbers {
                bodies.append(("POST", "/v1/resources", #"{"to":["\#(Self.peer)"],"path":"/etc/hostname","limit":\#(number)}"#))
            }
            for time in Self.times {
                bodies.append(("PUT", "/v1/peers/\(Self.peer)/trust", #"{"trust":"trusted","expires_at":"\#(time)"}"#))
            }
            for (method, target, json) in bodies {
                let answer = try await api.call(method, target, json: json)
                #expect(answer.status < 500, "\(method) \(target) \(json.prefix(200)): \(answer.text)")
                if answer.status >= 400 { #expect(answer.fields["content-type"] == "application/problem+json") }
            }
            // In a query they are whole numbers.
            for number in Self.numbers where Int(number) == nil || number == "0" {
                let text = number.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
                for target in [
                    "/v1/messages?limit=\(text)", "/v1/messages?after=\(text)", "/v1/streams/next/content?timeout_seconds=\(text)",
                    "/v1/resources?to=\(Self.peer)&name=x&size=\(text)", "/v1/resources?to=\(Self.peer)&name=x&size=0&limit=\(text)",
                ] {
                    let method = target.hasPrefix("/v1/resources") ? "POST" : "GET"
                    let answer = try await api.call(method, target)
                    #expect(answer.status < 500 || answer.status == 504, "\(method) \(target.prefix(200)): \(answer.text)")
                }
            }
            // An accepted time is shown within the years that every client can parse.
            let row = try await api.call("GET", "/v1/peers/\(Self.peer)")
            #expect(row.status == 200 && APIDocument.shared.faults(row.body, as: "Peer") == [], "\(row.text)")
            #expect(try await api.call("GET", "/v1/status").status == 200)
        }
    }
}
