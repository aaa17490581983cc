import Earshot
import EarshotDiscovery
import Foundation
import Logging
import Testing

@testable import earshotd

@Suite struct PlacesTests {
    @Test func systemdThenXDGThenHome() throws {
        let systemd = Places(
            environment: [
                "CONFIGURATION_DIRECTORY": "/etc/earshot", "STATE_DIRECTORY": "/var/lib/earshot:/x", "RUNTIME_DIRECTORY": "/run/earshot",
                "HOME": "/h", "XDG_RUNTIME_DIR": "/run/user/1",
            ], isRoot: false)
        #expect(try systemd.configuration(flag: nil)?.path == "/etc/earshot/earshotd.conf")
        #expect(try systemd.stateDirectory(flag: nil) == "/var/lib/earshot")
        #expect(try systemd.socket(setting: nil) == "/run/earshot/earshot.sock")
        #expect(try systemd.socket(setting: "/x.sock") == "/x.sock")
        let user = Places(environment: ["HOME": "/h", "XDG_RUNTIME_DIR": "/run/user/1"], isRoot: false)
        #expect(try user.configuration(flag: nil)?.path == "/h/.config/earshot/earshotd.conf")
        #expect(try user.configuration(flag: "/c")?.path == "/c")
        #expect(try user.stateDirectory(flag: nil) == "/h/.local/state/earshot")
        #expect(try user.socket(setting: nil) == "/run/user/1/earshot/earshot.sock")
        let xdg = Places(environment: ["HOME": "/h", "XDG_STATE_HOME": "/s", "XDG_CONFIG_HOME": "relative"], isRoot: true)
        #expect(try xdg.configuration(flag: nil)?.path == "/h/.config/earshot/earshotd.conf")
        #expect(try xdg.stateDirectory(flag: nil) == "/s/earshot")
        #expect(try xdg.socket(setting: nil) == "/run/earshot/earshot.sock")
    }

    @Test func withoutAPlaceTheErrorNamesTheFlag() throws {
        let nowhere = Places(environment: [:], isRoot: false)
        #expect(try nowhere.configuration(flag: nil) == nil)
        #expect(throws: SettingsError.self) { try nowhere.stateDirectory(flag: nil) }
        let error = #expect(throws: SettingsError.self) { try nowhere.socket(setting: nil) }
        #expect(error?.message.contains("--socket") == true)
        #expect(throws: SettingsError.self) { try nowhere.socket(setting: "/" + String(repeating: "x", count: 107)) }
    }

    /// As `sudo -u earshot earshotd --check-config` looks: that user has no home and no runtime directory, and the settings may be right.
    @Test func whoOnlyLooksNeedsNoPlaces() throws {
        let loader = { SettingsLoader(flags: $0, environment: [:], isRoot: false, hostName: "kitchen") }
        try withFile("[peer]\nport = 47111\n") { path in
            let loaded = try loader(.init(config: path)).load(placed: false)
            #expect(loaded.settings.port == 47111 && loaded.socket.isEmpty)
            let error = #expect(throws: SettingsError.self) { try loader(.init(config: path)).load() }
            #expect(error?.isUsage == true)
        }
        let long = "/" + String(repeating: "x", count: 107)
        try withFile("[control]\nsocket = \(long)\n") { path in
            let error = #expect(throws: SettingsError.self) { try loader(.init(config: path)).load(placed: false) }
            #expect(error?.isUsage == false)
        }
    }
}
