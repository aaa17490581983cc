import Earshot
import Testing

@testable import EarshotDiscovery

@Suite struct BackendChooserTests {
    private let patience = DiscoveryLimits.avahiPatience

    private func waiting() -> BackendChooser {
        var chooser = BackendChooser()
        _ = chooser.start(now: .zero, avahiIsConceivable: true)
        return chooser
    }

    private func embedded() -> BackendChooser {
        var chooser = BackendChooser()
        _ = chooser.start(now: .zero, avahiIsConceivable: false)
        return chooser
    }

    @Test func startsWithAvahiAndADeadline() {
        var chooser = BackendChooser()
        #expect(chooser.start(now: .seconds(1), avahiIsConceivable: true) == .startAvahi)
        #expect(chooser.backend == .avahi)
        #expect(chooser.deadline == .seconds(11))
    }

    @Test func startsEmbeddedAtOnceWhereThereIsNoBus() {
        var chooser = BackendChooser()
        #expect(chooser.start(now: .zero, avahiIsConceivable: false) == .startEmbedded)
        #expect(chooser.backend == .embedded)
        #expect(chooser.deadline == nil)
    }

    @Test func avahiThatAnswersInTimeStays() {
        var chooser = self.waiting()
        #expect(chooser.avahiAnswered(now: .seconds(9)) == .nothing)
        #expect(chooser.deadline == nil)
        #expect(chooser.timerFired(now: self.patience) == .nothing)
        #expect(chooser.backend == .avahi)
    }

    @Test func avahiThatDoesNotAnswerIsLeftAtTheDeadlineAndNotBefore() {
        var chooser = self.waiting()
        #expect(chooser.timerFired(now: self.patience - .milliseconds(1)) == .nothing)
        #expect(chooser.backend == .avahi)
        #expect(chooser.timerFired(now: self.patience) == .switchToEmbedded)
        #expect(chooser.backend == .embedded)
        #expect(chooser.timerFired(now: self.patience * 2) == .nothing)
    }

    @Test func repeatedSilenceDoesNotMoveTheDeadline() {
        var chooser = self.waiting()
        chooser.avahiFellSilent(now: .seconds(8))
        #expect(chooser.deadline == self.patience)
    }

    @Test func avahiThatFallsSilentIsWaitedForAnew() {
        var chooser = self.waiting()
        _ = chooser.avahiAnswered(now: .zero)
        chooser.avahiFellSilent(now: .seconds(100))
        #expect(chooser.backend == .avahi)
        #expect(chooser.deadline == .seconds(100) + self.patience)
        #expect(chooser.avahiAnswered(now: .seconds(105)) == .nothing)
        #expect(chooser.deadline == nil)
    }

    @Test func avahiThatAppearsTakesOverAndWhatEmbeddedSawIsForgottenLater() {
        var chooser = self.embedded()
        #expect(chooser.avahiAnswered(now: .seconds(50)) == .switchToAvahi)
        #expect(chooser.backend == .avahi)
        let forgetAt = Duration.seconds(50) + DiscoveryLimits.embeddedMemory
        #expect(chooser.deadline == forgetAt)
        #expect(chooser.timerFired(now: forgetAt - .milliseconds(1)) == .nothing)
        #expect(chooser.timerFired(now: forgetAt) == .forgetEmbedded)
        #expect(chooser.deadline == nil)
        #expect(chooser.timerFired(now: forgetAt) == .nothing)
    }

    @Test func embeddedIgnoresThatAvahiIsStillSilent() {
        var chooser = self.embedded()
        chooser.avahiFellSilent(now: .seconds(5))
        #expect(chooser.backend == .embedded)
        #expect(chooser.deadline == nil)
    }

    @Test func whatEmbeddedSawIsForgottenBeforeItStartsAnew() {
        var chooser = self.embedded()
        _ = chooser.avahiAnswered(now: .zero)
        chooser.avahiFellSilent(now: .seconds(1))
        #expect(chooser.deadline == DiscoveryLimits.embeddedMemory)
        let late = Duration.seconds(60)
        #expect(chooser.timerFired(now: late) == .forgetEmbedded)
        #expect(chooser.deadline == .seconds(1) + self.patience)
        #expect(chooser.timerFired(now: late) == .switchToEmbedded)
        #expect(chooser.deadline == nil)
    }
}
