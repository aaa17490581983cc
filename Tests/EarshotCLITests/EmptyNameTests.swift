import ArgumentParser
import EarshotClient
import Testing

@testable import EarshotCLI

/// An unset variable in a script names no peer, instead of every peer.
@Suite struct EmptyNameTests {
    @Test(arguments: [
        ["receive", "--from", ""], ["stream", "accept", ""], ["stream", "accept", "--from", ""], ["stream", "open", "bob", ""],
        ["file", "send", "bob", ""], ["status", "--socket", ""],
    ]) func anEmptyArgumentIsRefused(_ arguments: [String]) {
        #expect(throws: (any Error).self) { try EarshotCommand.parseAsRoot(arguments) }
    }

    @Test func theNameOfAFile() {
        #expect(throws: CommandFailure(.usage, "the name of the file is empty")) { try [ControlAPI.Resource]().named("") }
        #expect(throws: CommandFailure(.usage, "the name of the file is empty")) { try [ControlAPI.Resource]().offer("") }
    }
}
