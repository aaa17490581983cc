import Testing

@testable import earshotd

@Suite struct StateVersionTests {
    private static func inDirectory(_ body: (StateVersion) throws -> Void) throws {
        try withFile("") { path in try body(StateVersion(directory: String(path.dropLast("/earshotd.conf".count)))) }
    }

    @Test func noneIsThereBeforeOneIsWritten() throws {
        try Self.inDirectory { state in #expect(state.read() == nil) }
    }

    @Test func theLastOneCounts() throws {
        try Self.inDirectory { state in
            try state.write("0.3.0")
            try state.write("0.2.0")
            #expect(state.read() == "0.2.0")
        }
    }

    @Test func aRefusalNamesTheVersionThatCanReadIt() throws {
        try Self.inDirectory { state in
            #expect(state.refusal("no", current: "0.2.0") == "no")
            try state.write("0.3.0")
            #expect(state.refusal("no", current: "0.2.0") == "no; earshotd 0.3.0 has served it last, and this is 0.2.0")
        }
    }
}
