import EarshotWire
import NIOCore

/// Comparisons of digits, case by case: the rules of "Verification".
struct ComparisonCases {
    private let transcript = Transcript(initiatorHello: [1, 2, 3], responderHello: [4, 5], transport: .tls)
    private let own = VerificationID(high: 5, low: 1)
    private let other = VerificationID(high: 5, low: 2)
    private let ownNonce = [UInt8](repeating: 0x0A, count: 32)
    private let otherNonce = [UInt8](repeating: 0x0B, count: 32)

    private func hex(_ frame: VerificationFrame) throws -> String { try Frame.verification(frame).encoded().readableBytesView.hexadecimal }
    private func begin(_ id: VerificationID, _ nonce: [UInt8]) -> VerificationFrame {
        VerificationFrame(id: id, .begin(commitment: VerificationDigits.commitment(to: nonce, self.transcript)))
    }
    private func answer(_ id: VerificationID, _ nonce: [UInt8]) -> VerificationFrame { VerificationFrame(id: id, .answer(nonce: nonce)) }
    private func reveal(_ id: VerificationID, _ nonce: [UInt8]) -> VerificationFrame { VerificationFrame(id: id, .reveal(nonce: nonce)) }
    private func end(_ id: VerificationID, _ reason: VerificationFrame.EndReason = .givenUp) -> VerificationFrame {
        VerificationFrame(id: id, .end(reason))
    }

    private func asks(_ sends: VerificationFrame?) throws -> Vectors.Comparison.Step {
        Vectors.Comparison.Step(
            event: "asks", attempt: self.own.description, nonce: self.ownNonce.hexadecimal, verdict: sends == nil ? "none" : "send",
            sends: try sends.map { try self.hex($0) })
    }
    private func got(
        _ frame: VerificationFrame, _ verdict: String, sends: VerificationFrame? = nil, digits: String? = nil
    ) throws -> Vectors.Comparison.Step {
        Vectors.Comparison.Step(
            event: "received", hex: try self.hex(frame), verdict: verdict, sends: try sends.map { try self.hex($0) }, digits: digits)
    }
    private func ends(_ sends: VerificationFrame?) throws -> Vectors.Comparison.Step {
        Vectors.Comparison.Step(event: "ends", verdict: sends == nil ? "none" : "send", sends: try sends.map { try self.hex($0) })
    }

    private func vector(_ name: String, isLower: Bool = true, _ steps: [Vectors.Comparison.Step]) -> Vectors.Comparison {
        Vectors.Comparison(
            name: name, isLower: isLower, initiatorHello: "010203", responderHello: "0405", transport: "tls", steps: steps)
    }

    func all() throws -> [Vectors.Comparison] { try self.exchanges() + self.crossings() + self.violations() }

    private func exchanges() throws -> [Vectors.Comparison] {
        let begun = VerificationDigits.digits(self.transcript, beginner: self.ownNonce, answerer: self.otherNonce)
        let answered = VerificationDigits.digits(self.transcript, beginner: self.otherNonce, answerer: self.ownNonce)
        return [
            self.vector(
                "this side begins",
                [
                    try self.asks(self.begin(self.own, self.ownNonce)),
                    try self.got(
                        self.answer(self.own, self.otherNonce), "reveal", sends: self.reveal(self.own, self.ownNonce), digits: begun),
                    try self.got(self.end(self.own), "ended"), try self.got(self.end(self.own), "ignore"),
                ]),
            self.vector(
                "the other side begins",
                [
                    try self.got(self.begin(self.other, self.otherNonce), "requested"),
                    try self.asks(self.answer(self.other, self.ownNonce)),
                    try self.got(self.reveal(self.other, self.otherNonce), "show", digits: answered), try self.ends(self.end(self.other)),
                    try self.got(self.end(self.other), "ignore"),
                ]),
            self.vector(
                "a next attempt follows the last, also without an end",
                [
                    try self.asks(self.begin(self.own, self.ownNonce)),
                    try self.got(
                        self.answer(self.own, self.otherNonce), "reveal", sends: self.reveal(self.own, self.ownNonce), digits: begun),
                    try self.got(self.begin(self.other, self.otherNonce), "requested"),
                ]),
            self.vector(
                "asked twice", [try self.asks(self.begin(self.own, self.ownNonce)), try self.asks(nil)]),
            self.vector("nothing to end", [try self.ends(nil)]),
            self.vector(
                "the other side has too many waiting",
                [try self.asks(self.begin(self.own, self.ownNonce)), try self.got(self.end(self.own, .busy), "ended")]),
        ]
    }

    private func crossings() throws -> [Vectors.Comparison] {
        [
            self.vector(
                "both begin: the lower side's stands",
                [
                    try self.asks(self.begin(self.own, self.ownNonce)), try self.got(self.begin(self.other, self.otherNonce), "ignore"),
                    try self.got(self.end(self.other), "ignore"),
                ]),
            self.vector(
                "both begin: the higher side gives way, and answers", isLower: false,
                [
                    try self.asks(self.begin(self.own, self.ownNonce)),
                    try self.got(self.begin(self.other, self.otherNonce), "gives-way", sends: self.end(self.own)),
                    try self.asks(self.answer(self.other, self.ownNonce)),
                ]),
            self.vector(
                "an answer that crosses this side's end",
                [
                    try self.asks(self.begin(self.own, self.ownNonce)), try self.ends(self.end(self.own)),
                    try self.got(self.answer(self.own, self.otherNonce), "ignore"),
                ]),
        ]
    }

    private func violations() throws -> [Vectors.Comparison] {
        let requested = try self.got(self.begin(self.other, self.otherNonce), "requested")
        return [
            self.vector("a begin while one is under way", [requested, try self.got(self.begin(self.own, self.otherNonce), "violation")]),
            self.vector(
                "an id that was used before",
                [
                    requested, try self.got(self.end(self.other), "ended"),
                    try self.got(self.begin(self.other, self.otherNonce), "violation"),
                ]),
            self.vector(
                "a begin under this side's own id", isLower: false,
                [
                    try self.asks(self.begin(self.own, self.ownNonce)), try self.got(self.begin(self.own, self.otherNonce), "violation"),
                ]),
            self.vector("an answer to nothing", [try self.got(self.answer(self.own, self.otherNonce), "violation")]),
            self.vector(
                "an answer to the attempt that its own side has begun",
                [requested, try self.got(self.answer(self.other, self.otherNonce), "violation")]),
            self.vector("a reveal before an answer", [requested, try self.got(self.reveal(self.other, self.otherNonce), "violation")]),
            self.vector(
                "a reveal of something else",
                [
                    requested, try self.asks(self.answer(self.other, self.ownNonce)),
                    try self.got(self.reveal(self.other, self.ownNonce), "violation"),
                ]),
            self.vector("an end of nothing", [try self.got(self.end(self.own), "violation")]),
        ]
    }
}
