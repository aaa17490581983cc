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
            #expect("\(settings.node.displayName)" == "flag")
            #expect(settings.logLevel == .debug)
            #expect(settings.backend == .none)
            #expect(settings.node.port == 47110 && !settings.node.portIsFixed)
            #expect(settings.node.discoveryInfo == ["room": "environment", "Rack": "1"])
            #expect(settings.socket == nil)
        }
    }

    /// The unit of the packaged service sets values, and an administrator may override them.
    @Test func aUnitsWordIsTheWeakest() throws {
        let unit = ["EARSHOT_UNIT_CONTROL_GROUP": "earshot", "EARSHOT_UNIT_DISCOVERY_INFO_ROOM": "hall"]
        func group(_ text: String?, _ variables: [String: String] = [:]) throws -> String? {
            guard let text else { return try load(environment: unit.merging(variables) { $1 }).settings.group }
            return try withFile(text) { path in
                try load(flags: .init(config: path), environment: unit.merging(variables) { $1 }).settings.group
            }
        }
        #expect(try group(nil) == "earshot")
        #expect(try group("[control]\n") == "earshot")
        #expect(try group("[control]\ngroup = staff\n") == "staff")
        #expect(try group("[control]\ngroup = staff\n", ["EARSHOT_CONTROL_GROUP": "wheel"]) == "wheel")
        #expect(try group(nil, ["EARSHOT_CONTROL_GROUP": "wheel"]) == "wheel")
        // An empty value in the file or in a variable clears the unit's value. An empty variable does not clear the file's value.
        #expect(try group("[control]\ngroup =\n") == nil)
        #expect(try group("[control]\ngroup =\n", ["EARSHOT_CONTROL_GROUP": "wheel"]) == "wheel")
        #expect(try group(nil, ["EARSHOT_CONTROL_GROUP": ""]) == nil)
        #expect(try group("[control]\ngroup = staff\n", ["EARSHOT_CONTROL_GROUP": ""]) == "staff")
        // Every other setting has the same order.
        let text = "[peer]\nname = file\n[discovery.info]\nRoom = file\n"
        try withFile(text) { path in
            let environment = unit.merging(["EARSHOT_UNIT_PEER_NAME": "unit", "EARSHOT_UNIT_LOG_LEVEL": "error"]) { $1 }
            let settings = try load(flags: .init(config: path), environment: environment).settings
            #expect(
                "\(settings.node.displayName)" == "file" && settings.logLevel == .error && settings.node.discoveryInfo == ["Room": "file"])
        }
        let error = #expect(throws: SettingsError.self) { try load(environment: ["EARSHOT_UNIT_PEER_PORT": "x"]) }
        #expect(error?.description == "$EARSHOT_UNIT_PEER_PORT: 'x' is not a whole number from 0 to 65535")
    }

    /// An empty value clears a pair as it clears every other key.
    @Test func anEmptyPairTakesBackWhatWasSet() throws {
        func loaded(_ text: String, _ variables: [String: String] = [:]) throws -> SettingsLoader.Result {
            let environment = variables.merging(["EARSHOT_UNIT_DISCOVERY_INFO_ROOM": "hall"]) { $1 }
            return try withFile(text) { try load(flags: .init(config: $0), environment: environment) }
        }
        #expect(try loaded("").settings.node.discoveryInfo == ["room": "hall"])
        let none = try loaded("[discovery.info]\nRoom =\n")
        #expect(none.settings.node.discoveryInfo.isEmpty && none.sources.isEmpty)
        #expect(try loaded("[discovery.info]\nrack = 1\nroom = \"\"\nRACK =\nrack = 2\n").settings.node.discoveryInfo == ["rack": "2"])
        // An empty variable clears the unit's pair, and does not clear the file's.
        let empty = ["EARSHOT_DISCOVERY_INFO_ROOM": ""]
        #expect(try loaded("", empty).settings.node.discoveryInfo.isEmpty)
        #expect(try loaded("[discovery.info]\nroom = file\n", empty).settings.node.discoveryInfo == ["room": "file"])
    }

    /// A drop-in wins over the file beside it, and both over the unit.
    @Test func aDropInWinsOverTheUnit() throws {
        try withFile("[control]\ngroup = staff\n") { path in
            let place = "\(path).d"
            try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
            try "[control]\ngroup = wheel\n".write(toFile: "\(place)/group.conf", atomically: true, encoding: .utf8)
            let loaded = try load(flags: .init(config: path), environment: ["EARSHOT_UNIT_CONTROL_GROUP": "earshot"])
            #expect(loaded.settings.group == "wheel")
            #expect(loaded.sources.map(\.description) == ["control.group = wheel (\(place)/group.conf:2)"])
        }
    }

    /// `--check-config` prints the source of each value.
    @Test func whereEachValueComesFrom() throws {
        try withFile("[peer]\nname = file\nport = 47111\n[log]\nlevel = error\n[discovery.info]\nRack = 1\u{200B}\n") { path in
            let loaded = try load(
                flags: .init(config: path, name: "flag"),
                environment: [
                    "EARSHOT_LOG_LEVEL": "info", "EARSHOT_UNIT_CONTROL_GROUP": "earshot", "EARSHOT_UNIT_LOG_LEVEL": "debug",
                    "EARSHOT_MESSAGES_RECEIPTS": "",
                ])
            #expect(
                loaded.sources.map(\.description) == [
                    "peer.name = flag (option --name)", "peer.port = 47111 (\(path):3)",
                    "control.group = earshot (the unit, by EARSHOT_UNIT_CONTROL_GROUP)",
                    "log.level = info (environment variable EARSHOT_LOG_LEVEL)", "discovery.info.Rack = 1\\u{200B} (\(path):7)",
                ])
        }
        #expect(try load().sources.isEmpty)
    }

    /// A file that nobody has looked at is not said to be right.
    @Test func whereNoFileIsFoundIsSaid() throws {
        #expect(try load().report == ["/nonexistent/.config/earshot/earshotd.conf: not present, using defaults"])
        #expect(
            try load(environment: ["CONFIGURATION_DIRECTORY": "/no\nwhere"]).report == [
                "/no\\nwhere/earshotd.conf: not present, using defaults"
            ])
        try withFile("[log]\nlevel = error\n") { (path: String) throws in
            #expect(try load(flags: .init(config: path)).report == ["\(path): ok", "log.level = error (\(path):2)"])
        }
        let nowhere = SettingsLoader(flags: .init(), environment: [:], isRoot: true, hostName: "kitchen")
        #expect(try nowhere.load(placed: false).report == ["no settings file, using defaults"])
    }

    /// A typo is found in the section, in the key and in the unit's variables; what other programs and `earshot` read is no setting.
    @Test func aVariableWithATypoIsFound() throws {
        let faults = try load(environment: [
            "EARSHOT_MESAGES_RECEIPTS": "no", "EARSHOT_PEER_NAMES": "x", "EARSHOT_PORT": "1", "EARSHOT_UNIT_CONTROL_GRUOP": "x",
            "EARSHOT_LOG_TO_DISK": "x", "EARSHOT_DISCOVERY_INFO_": "x", "EARSHOT_DISCOVERY_INFO_ROOM": "hall", "EARSHOT_SOCKET": "/s",
            "EARSHOT_LAB": "x", "EARSHOT_BIN": "x", "EARSHOT_OTHERS": "x", "EARSHOT_": "x", "EARSHOT_PEER_NAME": "alice",
        ]).unknownVariables
        #expect(
            faults.map(\.description) == [
                "$EARSHOT_DISCOVERY_INFO_: unknown setting",
                "$EARSHOT_LOG_TO_DISK: unknown setting",
                "$EARSHOT_MESAGES_RECEIPTS: unknown setting; did you mean EARSHOT_MESSAGES_RECEIPTS?",
                "$EARSHOT_PEER_NAMES: unknown setting; did you mean EARSHOT_PEER_NAME?",
                "$EARSHOT_PORT: unknown setting; did you mean EARSHOT_PEER_PORT?",
                "$EARSHOT_UNIT_CONTROL_GRUOP: unknown setting; did you mean EARSHOT_UNIT_CONTROL_GROUP?",
            ])
        #expect(faults.allSatisfy { $0.exitCode == 78 })
    }

    @Test func theNameIsTheHostNamesFirstLabel() throws {
        #expect("\(try load().settings.node.displayName)" == "kitchen")
        #expect("\(try load(hostName: "").settings.node.displayName)" == "earshot")
        #expect("\(try load(hostName: String(repeating: "x", count: 64)).settings.node.displayName)" == "earshot")
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
    /// The settings about groups reach the node without a restart.
    @Test func theNodeHearsOfGroups() throws {
        let settings = try load(file: "[groups]\ninvitations = accept\nfiles = ask\n")
        #expect(settings.node.groupInvitations == .accept && settings.node.groupFiles == .ask)
        let defaults = try load(file: "").node
        #expect(defaults.groupInvitations == .ask && defaults.groupFiles == .accept)
        let changes = settings.changes(from: try load(file: ""))
        #expect(changes == SettingsChanges(changed: ["groups.invitations", "groups.files"], needsRestart: []))
    }

    /// A value that moved to another line is the same value.
    @Test func thePlaceOfAValueIsNoChange() throws {
        let text = "[identity]\ncertificate = /x\n[resources]\ndirectory = /srv\n[control]\ngroup = users\n"
        #expect(try load(file: "# moved\n" + text).changes(from: load(file: text)) == SettingsChanges(changed: [], needsRestart: []))
    }

    /// Certificate tools replace files under the same path. The daemon continues with the contents that it read at its start.
    @Test func whatIsRenewedUnderTheSamePathIsNamed() throws {
        try withFile("") { path in
            let (certificate, authority) = (path + ".pem", path + ".ca")
            func write(_ text: String, to path: String) throws { try Data(text.utf8).write(to: URL(fileURLWithPath: path)) }
            func read() throws -> Settings { try load(flags: .init(config: path)).settings }
            try write("[identity]\ncertificate = \(certificate)\nprivate_key = /key\nauthorities = \(authority)\n", to: path)
            try write("one", to: certificate)
            try write("one", to: authority)
            let started = try read()
            #expect(try read().changes(from: started) == SettingsChanges(changed: [], needsRestart: []))
            try write("two", to: certificate)
            let names = ["identity.certificate", "identity.authorities"]
            #expect(try read().changes(from: started) == SettingsChanges(changed: [names[0]], needsRestart: [names[0]]))
            try FileManager.default.removeItem(atPath: authority)
            #expect(try read().changes(from: started).needsRestart == names)
            // Each reload names the keys, until the daemon restarts.
            #expect(try read().changes(from: read().applied(to: started)).needsRestart == names)
        }
    }

    @Test func everyKeyThatDiffersIsNamed() throws {
        let running = try load(file: "[discovery.info]\nroom = attic\nrack = 1\n")
        let new = try load(file: SettingsFileTests.other)
        let changes = new.changes(from: running)
        let keys = Setting.all.map(\.name)
        #expect(changes.changed == keys + ["discovery.info.rack", "discovery.info.room"])
        #expect(
            changes.needsRestart == [
                "peer.service_type", "peer.port", "identity.certificate", "identity.private_key", "identity.authorities", "localsend.port",
                "control.socket", "control.group",
            ])
        #expect(new.changes(from: new) == SettingsChanges(changed: [], needsRestart: []))
        // After the changes that can be applied, only those that need a restart remain.
        let rest = new.changes(from: new.applied(to: running))
        #expect(rest.changed == rest.needsRestart && rest.needsRestart == changes.needsRestart)
    }
}
