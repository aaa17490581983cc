import Foundation
import Glibc
import Testing

@testable import earshotd

/// The process's own figures.
@Suite struct ProcessFiguresTests {
    @Test func theKernelsLineIsReadWhateverTheCommandIsCalled() {
        let rest = "S 1 2 3 4 -1 4194560 100 200 3 4 250 50 1 2 20 0 17 0 98765 123456789 2048 18446744073709551615 1 1"
        let expected = ProcessFigures.StatFields(
            userTicks: 250, systemTicks: 50, threads: 17, startTicks: 98765, virtualBytes: 123_456_789, residentPages: 2048)
        for command in ["earshotd", "a b", "a) S 9 (b", ""] {
            #expect(ProcessFigures.fields(ofStat: "4711 (\(command)) \(rest)\n") == expected, "\(command)")
        }
        for wrong in ["", "4711 earshotd S", "4711 (earshotd) S 1 2", "4711 (earshotd) " + rest.replacing("250", with: "x")] {
            #expect(ProcessFigures.fields(ofStat: wrong) == nil, "\(wrong)")
        }
    }

    @Test func thisProcessHasSome() throws {
        let before = try #require(ProcessFigures.now())
        #expect(before.residentMemory > 1 << 20 && before.virtualMemory >= before.residentMemory && before.threads >= 1)
        #expect(before.cpuSeconds > 0 && before.startedAt < Date() && before.startedAt > Date(timeIntervalSinceNow: -86_400))
        #expect(before.openDescriptors > 0)
    }
}
