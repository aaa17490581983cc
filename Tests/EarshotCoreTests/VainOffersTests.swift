import Testing

@testable import EarshotCore

@Suite struct VainOffersTests {
    @Test func asManyAsTheLimit() {
        let now = MonotonicInstant(nanoseconds: 1_000_000_000)
        var back = VainOffers()
        for _ in 0..<EarshotLimits.vainOffers - 1 { back.count(at: now) }
        #expect(back.isTooMuch(at: now) == false)
        back.count(at: now)
        #expect(back.isTooMuch(at: now) == true)
        #expect(back.isTooMuch(at: now + EarshotLimits.vainOfferTime - .nanoseconds(1)) == true)
        #expect(back.isTooMuch(at: now + EarshotLimits.vainOfferTime) == false)
    }

    @Test func aPauseForgetsAll() {
        let now = MonotonicInstant(nanoseconds: 1_000_000_000)
        var back = VainOffers()
        for _ in 0..<100_000 { back.count(at: now) }
        let later = now + EarshotLimits.vainOfferTime * EarshotLimits.vainOffers
        #expect(back.isTooMuch(at: later) == false)
        for _ in 0..<EarshotLimits.vainOffers - 1 { back.count(at: later) }
        #expect(back.isTooMuch(at: later) == false)
        back.count(at: later)
        #expect(back.isTooMuch(at: later) == true)
    }

    @Test func aPersonsPaceIsNeverTooMuch() {
        var now = MonotonicInstant(nanoseconds: 1_000_000_000)
        var back = VainOffers()
        for _ in 0..<10_000 {
            #expect(back.isTooMuch(at: now) == false)
            back.count(at: now)
            now = now + EarshotLimits.vainOfferTime
        }
    }
}
