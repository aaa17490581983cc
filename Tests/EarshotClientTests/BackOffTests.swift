import Testing

@testable import EarshotClient

/// The pauses between a reader's attempts to reconnect.
@Suite struct BackOffTests {
    @Test func thePauseDoublesUpToItsLimit() {
        var backOff = BackOff()
        #expect((0..<8).map { _ in backOff.step() } == [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000].map { .milliseconds($0) })
    }

    @Test func aPositionIsReadFromTheHeader() {
        #expect(ControlEventPosition(header: "a-b:7") == ControlEventPosition(epoch: "a-b", sequence: 7))
        for header in [nil, "", "7", "a:b:7", "a:", "a:-1"] { #expect(ControlEventPosition(header: header) == nil, "\(header ?? "none")") }
    }
}
