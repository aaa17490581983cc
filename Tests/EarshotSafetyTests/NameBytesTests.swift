import EarshotSafety
import Testing

@Suite struct NameBytesTests {
    private let composed = "caf\u{E9}"
    private let decomposed = "cafe\u{301}"

    @Test func equivalentNamesDiffer() {
        #expect(self.composed == self.decomposed, "as Swift has it")
        #expect(!self.composed.hasBytes(of: self.decomposed))
        #expect(self.composed.hasBytes(of: self.composed))
    }

    @Test func eachOfTwinsIsMeantByItsOwnName() {
        let both = [self.composed, self.decomposed, "tea"]
        for name in both { #expect(both.called(name) { $0 }.map { Array($0.utf8) } == [Array(name.utf8)]) }
        // If only one equivalent name exists, it matches, because another keyboard may produce the other form.
        #expect([self.decomposed].called(self.composed) { $0 }.count == 1)
        #expect(both.called("milk") { $0 }.isEmpty)
    }
}
