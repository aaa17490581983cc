import Testing

@testable import EarshotCore

@Suite struct StreamInletTests {
    private var inlet = StreamInlet()

    @Test mutating func standsThenDue() {
        self.inlet.asked()
        #expect(self.inlet.opened(true) == .wait)
        #expect(self.inlet.rerouted() == .read)
        #expect(self.inlet.lost() == .callBack)
        #expect(self.inlet.rerouted() == .wait)
        #expect(self.inlet.lost() == .wait)
    }

    @Test mutating func dueThenStands() {
        self.inlet.asked()
        #expect(self.inlet.rerouted() == .wait)
        #expect(self.inlet.opened(true) == .read)
    }

    @Test mutating func dueAndUnavailable() {
        self.inlet.asked()
        #expect(self.inlet.rerouted() == .wait)
        #expect(self.inlet.opened(false) == .callBack)
    }

    @Test mutating func unavailableAndDue() {
        self.inlet.asked()
        #expect(self.inlet.opened(false) == .wait)
        #expect(self.inlet.rerouted() == .callBack)
        #expect(self.inlet.opened(true) == .wait)
    }

    @Test mutating func answersWithoutAQuestionAreIgnored() {
        #expect(self.inlet.opened(true) == .wait)
        #expect(self.inlet.rerouted() == .wait)
        #expect(self.inlet.lost() == .wait)
        #expect(self.inlet == StreamInlet())
    }

    @Test mutating func aSecondQuestionChangesNothing() {
        self.inlet.asked()
        #expect(self.inlet.opened(true) == .wait)
        self.inlet.asked()
        #expect(self.inlet.rerouted() == .read)
    }
}
