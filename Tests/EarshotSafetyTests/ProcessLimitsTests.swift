import EarshotSafety
import Testing

/// The limits are the whole process's, so that the laboratory tries too low ones on the programs (`ResourceLimits`).
@Suite struct ProcessLimitsTests {
    @Test func aProcessHasWhatItNeeds() {
        #expect(throws: Never.self) { try ProcessLimits.require(descriptors: 8, threads: 4) }
    }
}
