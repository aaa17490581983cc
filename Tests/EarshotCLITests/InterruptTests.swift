import Glibc
import Testing

@testable import EarshotCLI

/// The effects of the first and further signals.
@Suite struct InterruptTests {
    private let start = ContinuousClock.now

    private func action(_ state: inout Interrupts.State, after milliseconds: Int) -> String {
        switch state.received(at: self.start + .milliseconds(milliseconds)) {
        case .takeBack: "take back"
        case .pass: "pass"
        case .hurry: "hurry"
        case .giveUp: "give up"
        case .end: "end"
        case .ignore: "ignore"
        }
    }

    @Test func withNothingToTakeBackItEndsAtOnce() {
        var state = Interrupts.State()
        #expect(self.action(&state, after: 0) == "end")
    }

    /// A second signal only shortens the wait. A signal that a wrapper sends twice counts once.
    @Test func whatIsTakenBackIsHurriedAndThenGivenUp() {
        var state = Interrupts.State()
        state.listener = AsyncStream.makeStream(of: CInt.self).continuation
        let same = Interrupts.sameRequestMilliseconds
        #expect(self.action(&state, after: 0) == "take back")
        #expect(self.action(&state, after: same - 1) == "ignore")
        #expect(self.action(&state, after: same) == "hurry")
        #expect(self.action(&state, after: 2 * same - 1) == "ignore")
        #expect(self.action(&state, after: 2 * same) == "give up")
    }

    /// A command that follows the signals gets each request once.
    @Test func aFollowerGetsEveryRequest() {
        var state = Interrupts.State()
        state.follower = AsyncStream.makeStream(of: CInt.self).continuation
        let same = Interrupts.sameRequestMilliseconds
        let actions = [0, same - 1, same, 2 * same, 3 * same].map { self.action(&state, after: $0) }
        #expect(actions == ["pass", "ignore", "pass", "pass", "pass"])
    }

    /// nohup(1) starts a command with SIGHUP ignored, so that it outlives the terminal.
    @Test func aHangupThatIsIgnoredStaysSo() {
        #expect(Interrupts.numbers(isIgnored: { _ in false }) == [SIGINT, SIGTERM, SIGHUP])
        #expect(Interrupts.numbers(isIgnored: { $0 == SIGHUP }) == [SIGINT, SIGTERM])
        // No other code here uses this signal.
        #expect(!Interrupts.isIgnored(SIGUSR2))
        signal(SIGUSR2, SIG_IGN)
        #expect(Interrupts.isIgnored(SIGUSR2))
        signal(SIGUSR2, SIG_DFL)
        #expect(!Interrupts.isIgnored(SIGUSR2))
    }
}
