import Testing

@testable import earshotd

/// A start with valid settings that name a group or directory that does not exist yet: an exit with 78 would keep the service down
/// permanently.
@Suite struct StartTests {
    private func start(_ text: String) throws -> Daemon {
        try withFile(text) { path in
            let loader = SettingsLoader(
                flags: .init(config: path), environment: ["XDG_RUNTIME_DIR": "/run/user/1000", "HOME": "/nonexistent"], isRoot: false,
                hostName: "kitchen")
            return try Daemon(loader.load(), loader: loader)
        }
    }

    /// Returns the error with which `--check-config` and a reload refuse the same settings.
    private func refusal(_ text: String) -> SettingsError? {
        #expect(throws: SettingsError.self) { try withFile(text) { try load(flags: .init(config: $0)).check() } }
    }

    @Test func aGroupThatIsNotThereYetIsAwaited() throws {
        let text = "[control]\ngroup = no-such-group\n"
        let error = #expect(throws: StartError.self) { try self.start(text) }
        #expect(error?.exitCode == 1)
        #expect(error?.description.contains("earshotd.conf:2: 'no-such-group' is not a group of this system; it may be in") == true)
        #expect(self.refusal(text)?.exitCode == 78)
        #expect(throws: Never.self) { try self.start("[control]\ngroup = root\n") }
    }

    @Test func aDirectoryThatIsNotThereYetStopsNothing() throws {
        let text = "[resources]\ndirectory = /nonexistent/here\n"
        #expect(throws: Never.self) { try self.start(text) }
        #expect(self.refusal(text)?.exitCode == 78)
    }

    @Test func whatIsWrongIsRefused() throws {
        let text = "[identity]\ncertificate = /nothing\nprivate_key = /nothing\n"
        #expect(#expect(throws: SettingsError.self) { try self.start(text) }?.exitCode == 78)
        #expect(self.refusal(text)?.exitCode == 78)
    }
}
