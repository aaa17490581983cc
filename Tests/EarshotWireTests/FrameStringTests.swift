import EarshotWire
import Testing

/// Every string that a peer can put into a frame, and what becomes of it: a new one fails here until it is listed with what becomes of it.
@Suite struct FrameStringTests {
    /// By frame and field. `label`: refused on the wire unless it is a `DisplayName`, a `ServiceType` or a `StreamName`. `shown`: becomes
    /// text that goes through `escapedForDisplay` wherever it is shown. `name`: becomes a path, through `SafeName` and no other way.
    static let listed = [
        "hello.displayName": "label", "hello.serviceType": "label", "refusal.explanation": "shown", "message.contentType": "shown",
        "resource.offer.name": "name", "resource.refuse.refusal.explanation": "shown", "resource.cancel.refusal.explanation": "shown",
        "group.invite.terms.name": "label", "group.inviteAnswer.decision.accepted.name": "label", "group.record.terms.name": "label",
        "group.record.seat.name": "label",
        "stream.open.name": "label", "stream.refuse.refusal.explanation": "shown", "stream.abort.refusal.explanation": "shown",
    ]

    @Test func everyStringIsListed() throws {
        var found: Set<String> = []
        for fixture in try Fixtures.frames() {
            guard let value = Mirror(reflecting: fixture.frame).children.first else { continue }
            self.collect(value.value, at: value.label ?? "?", into: &found)
        }
        #expect(found == Set(Self.listed.keys))
    }

    private func collect(_ value: Any, at path: String, into found: inout Set<String>) {
        switch value {
        case is String, is DisplayName, is ServiceType, is StreamName: found.insert(path)
        default:
            for child in Mirror(reflecting: value).children {
                let name = child.label.map { $0.first?.isLetter == true ? "." + $0 : "" } ?? ""
                self.collect(child.value, at: path + name, into: &found)
            }
        }
    }

    /// The corpus: what a label refuses, so that only format characters are left to be escaped.
    @Test(arguments: ["\u{1B}[1A", "a\nb", "a\0", "\u{9B}1A", "\u{7F}", "", String(repeating: "x", count: 64), "\u{85}"])
    func labelsRefuseWhatActs(text: String) {
        #expect(throws: LabelError.self) { _ = try DisplayName(text) }
        #expect(throws: LabelError.self) { _ = try ServiceType(text) }
        #expect(!MessageFrame.isContentType(text) || text.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F })
    }
}
