import EarshotClient
import EarshotSafety
import Foundation
import ModelLaws
import Testing

@testable import EarshotCLI

/// Every value that the daemon can send is shown without a crash: extreme numbers, times and texts, and unknown values.
@Suite struct RenderExtremesTests {
    private static let numbers: [UInt64] = [0, 1, 999, 1000, UInt64(Int64.max), UInt64(Int64.max) + 1, .max]
    private static let texts = ["", "x", "\u{1B}[2J\u{202E}\n\r\u{2028}", String(repeating: "\u{200B}", count: 1024)]
    /// A time before the year 0, the first and the last time that the daemon can send, and an unreadable time.
    private static let times: [Date?] = [
        nil, Date(timeIntervalSince1970: -.infinity), Date(timeIntervalSince1970: .nan), Date(timeIntervalSince1970: -1e18), .distantPast,
        Date(timeIntervalSince1970: 253_402_300_799.999), Date(timeIntervalSince1970: 1e18),
    ]

    private func looks(_ output: String, _ what: String) {
        let isBare = output.unicodeScalars.contains { $0 != "\n" && String($0).escapedForDisplay.unicodeScalars.first != $0 && $0 != "\\" }
        #expect(!isBare, "\(what): \(output.debugDescription.prefix(300))")
    }

    @Test func nothingThatTheDaemonSaysStopsIt() {
        for text in Self.texts {
            for number in Self.numbers {
                for other in Self.numbers {
                    self.looks(
                        ProgressLine.text(name: text, transferred: number, size: other, rate: other, left: number, width: 80), "progress")
                    self.looks(ProgressLine.text(name: text, transferred: number, size: other, rate: number, width: 0), "progress")
                    let resource = ControlAPI.Resource(
                        id: "1", direction: .unknown(text), peerID: "A", peerName: text, name: text, kind: .unknown(text), size: number,
                        transferred: other, bytesPerSecond: other, secondsLeft: number, state: .known(.transferring), digest: text,
                        path: text,
                        error: .init(code: Tolerant(rawValue: text), message: text), createdAt: .distantPast, completedAt: .distantPast,
                        inSpool: true)
                    self.looks(Render.resources([resource]).render(width: 40, bold: false), "resources")
                    ProgressLine.draw(name: text, [resource, resource])
                    let stream = ControlAPI.Stream(
                        id: "1", direction: .known(.incoming), peerID: "A", peerName: text, name: text, state: .known(.open),
                        transferred: number, bytesPerSecond: other, openedAt: .distantPast,
                        error: .init(code: Tolerant(rawValue: text), message: text))
                    self.looks(Render.streams([stream]).render(width: nil, bold: false), "streams")
                    for kind in ControlAPI.Event.Kind.allCases {
                        self.looks(
                            Render.event(
                                .init(epoch: text, seq: number, time: nil, type: .known(kind), resource: resource, from: number, to: other)),
                            "event")
                    }
                }
            }
        }
    }

    @Test func unknownTimesAreSaidToBeUnknown() throws {
        for time in Self.times {
            let text = Words.time(time)
            #expect(text == "unknown" || text.contains(":"), "\(text)")
            self.looks(Render.event(.init(epoch: "e", seq: 1, time: time, type: .unknown("x"))), "event")
        }
        #expect(Words.time(nil) == "unknown")
        let json = #"""
            {"id":"1f9ee1a4-8c5f-a6ff-30a8-a1a1b7a9a4bb","direction":"incoming",
            "from":{"id":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","name":"bob"},"body":"hello","content_type":"text/plain","size":5,
            "mode":"reliable","sent_at":"-4712-01-01T12:00:00.000Z","received_at":"20000-01-01","state":"unread"}
            """#
        let message = try ControlJSON.read(ControlAPI.Message.self, from: json.utf8).value
        #expect(Render.message(message) == "unknown bob: hello\n")
        // An event of a known type with an unreadable subject.
        #expect(Render.event(.init(epoch: "e", seq: 1, time: nil, type: .known(.peerChanged))) == "unknown peer.changed unknown\n")
    }

    @Test func whatIsLeftOutIsSaidEscaped() {
        self.looks(UnreadableRemarks.line("the answer to GET /v1/peers: `peers[0].\u{1B}[2J` is missing"), "remark")
    }

    @Test func timesOfCallersAreBounded() {
        for text in ["1e300", "nan", "inf", "-1", "0x10", "", "s", "99999999999999999999d", "1e", "367d", "."] {
            #expect(Seconds(argument: text) == nil, "\(text)")
        }
        #expect(Seconds(argument: "366d")?.value == Seconds.limit)
    }
}
