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

    /// An administrator who starts the daemon manually with the service's state directory has none of its unit's variables. The service's
    /// settings apply nevertheless, and so does the identity that they name.
    @Test func theServicesStateHasTheServicesSettings() throws {
        try withFile("[identity]\ncertificate = /etc/earshot/alice.pem\nprivate_key = /etc/earshot/alice.key\n") { path in
            let settings = URL(fileURLWithPath: path).deletingLastPathComponent().path
            let (state, link) = ("\(settings)/state", "\(settings)/link")
            try FileManager.default.createDirectory(atPath: state, withIntermediateDirectories: false)
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: state)
            let service = Places.Service(settings: settings, state: state)
            func found(_ flag: String?, _ more: [String: String] = [:], config: String? = nil) throws -> String? {
                let places = Places(environment: more.merging(["HOME": "/h"]) { $1 }, isRoot: false, service: service)
                return try places.configuration(flag: config, stateFlag: flag)?.path
            }
            for flag in [state, state + "/", link] { #expect(try found(flag) == path) }
            #expect(try found(nil, ["STATE_DIRECTORY": state]) == path)
            #expect(try found(state, config: "/c") == "/c")
            #expect(try found(state, ["CONFIGURATION_DIRECTORY": "/x"]) == "/x/earshotd.conf")
            for flag in [nil, settings, "/nonexistent"] as [String?] { #expect(try found(flag) == "/h/.config/earshot/earshotd.conf") }
            let loader = SettingsLoader(
                flags: .init(stateDirectory: state, socket: "/s"), environment: [:], isRoot: false, hostName: "kitchen", service: service)
            #expect(try loader.load().settings.node.certificate == "/etc/earshot/alice.pem")
            #expect(try loader.anew().load().settings.node.certificate == "/etc/earshot/alice.pem")
            // If the service has no settings of its own, the caller's settings apply, as before.
            try FileManager.default.removeItem(atPath: path)
            #expect(try found(state) == "/h/.config/earshot/earshotd.conf")
            try FileManager.default.createDirectory(atPath: path + ".d", withIntermediateDirectories: false)
            #expect(try found(state) == path)
        }
    }

    /// `sudo -u earshot earshotd --check-config` runs as a user without a home or runtime directory, and the settings may still be valid.
    @Test func whoOnlyLooksNeedsNoPlaces() throws {
        let loader = { SettingsLoader(flags: $0, environment: [:], isRoot: false, hostName: "kitchen") }
        try withFile("[peer]\nport = 47111\n") { path in
            let loaded = try loader(.init(config: path)).load(placed: false)
            #expect(loaded.settings.node.port == 47111 && loaded.socket.isEmpty)
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
