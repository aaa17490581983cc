import Earshot
import EarshotDiscovery
import Foundation
import Logging
import Testing

@testable import earshotd

@Suite struct SettingsLayersTests {
    @Test func flagOverEnvironmentOverFileOverDefault() throws {
        try withFile("[peer]\nname = file\n[log]\nlevel = error\n[discovery]\nbackend = none\n[discovery.info]\nroom = file\nRack = 1\n") {
            path in
            let environment = [
                "EARSHOT_PEER_NAME": "environment", "EARSHOT_LOG_LEVEL": "debug", "EARSHOT_WHATEVER": "x", "EARSHOT_SOCKET": "/client.sock",
                "EARSHOT_DISCOVERY_INFO_ROOM": "environment", "EARSHOT_PEER_PORT": "",
            ]
            let settings = try load(flags: .init(config: path, name: "flag"), environment: environment).settings
            #expect("\(settings.name)" == "flag")
            #expect(settings.logLevel == .debug)
            #expect(settings.backend == .none)
            #expect(settings.port == 47110 && !settings.portIsChosen)
            #expect(settings.discoveryInfo == ["room": "environment", "Rack": "1"])
            #expect(settings.socket == nil)
        }
    }

    @Test func theNameIsTheHostNamesFirstLabel() throws {
        #expect("\(try load().settings.name)" == "kitchen")
        #expect("\(try load(hostName: "").settings.name)" == "earshot")
        #expect("\(try load(hostName: String(repeating: "x", count: 64)).settings.name)" == "earshot")
    }

    @Test(arguments: [
        SettingsLoader.Flags(name: ""), .init(serviceType: "-"), .init(port: "70000"), .init(discovery: "dns"), .init(logLevel: "x"),
    ])
    func aWrongFlagIsAUsageError(_ flags: SettingsLoader.Flags) throws {
        let error = #expect(throws: SettingsError.self) { try load(flags: flags) }
        #expect(error?.exitCode == 64)
        #expect(error?.description.hasPrefix("--") == true)
    }

    @Test func aWrongVariableIsAConfigurationError() throws {
        let error = #expect(throws: SettingsError.self) { try load(environment: ["EARSHOT_PEER_PORT": "x"]) }
        #expect(error?.exitCode == 78)
        #expect(error?.description == "$EARSHOT_PEER_PORT: 'x' is not a whole number from 0 to 65535")
    }

    @Test func aConfigFlagMustNameAFile() throws {
        let error = #expect(throws: SettingsError.self) { try load(flags: .init(config: "/nonexistent/earshotd.conf")) }
        #expect(error?.exitCode == 78)
        #expect(error?.message == "cannot read /nonexistent/earshotd.conf: no such file or directory")
        #expect(throws: SettingsError.self) { try load(flags: .init(config: "/")) }
    }
}

@Suite struct SettingsChangesTests {
    @Test func everyKeyThatDiffersIsNamed() throws {
        let running = try load(file: "[discovery.info]\nroom = attic\nrack = 1\n")
        let new = try load(file: SettingsFileTests.other)
        let changes = new.changes(from: running)
        let keys = SettingKey.allCases.map(\.rawValue)
        #expect(changes.changed == keys + ["discovery.info.Empty", "discovery.info.rack", "discovery.info.room"])
        #expect(
            changes.needsRestart == [
                "peer.service_type", "peer.port", "identity.certificate", "identity.private_key", "identity.authorities", "control.socket",
                "control.group",
            ])
        #expect(new.changes(from: new) == SettingsChanges(changed: [], needsRestart: []))
        // What is left after all that can be taken up has been.
        let rest = new.changes(from: new.applied(to: running))
        #expect(rest.changed == rest.needsRestart && rest.needsRestart == changes.needsRestart)
    }
}
