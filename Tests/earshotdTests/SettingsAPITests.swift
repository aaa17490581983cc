import APIDocument
import Earshot
import EarshotClient
import Foundation
import Testing

@testable import earshotd

/// `/v1/settings`: the values in effect, and the reload.
@Suite struct SettingsAPITests {
    private static func setting(_ key: String, _ api: APICaller) async throws -> ControlAPI.Setting {
        let list = try ControlJSON.decode(ControlAPI.SettingList.self, from: try await api.call("GET", "/v1/settings").text.utf8)
        return try #require(list.settings.first { $0.key == key })
    }

    @Test func valuesHaveTheirPlaces() async throws {
        try await APIServer.with { server in
            let api = APICaller(path: server.path)
            let name = try await Self.setting("peer.name", api)
            #expect(name.value == "alice" && name.source == .known(.default) && name.place == nil)
            let socket = try await Self.setting("control.socket", api)
            #expect(socket.value == server.path && socket.source == .known(.option) && socket.place == "--socket" && socket.needsRestart)
            let browse = try await Self.setting("discovery.browse", api)
            #expect(browse.value == "yes" && browse.choices == ["yes", "no"])
            #expect(try await Self.setting("log.level", api).choices.contains("debug"))
        }
    }

    /// A value that needs a restart is shown beside the value in effect, until it is changed back.
    @Test func aReloadTellsWhatChanges() async throws {
        try await APIServer.with { server in
            let api = APICaller(path: server.path)
            let file = URL(fileURLWithPath: server.configuration)
            try Data("[peer]\nname = desk\nport = 5000\n[discovery.info]\nroom = kitchen\n".utf8).write(to: file)
            let reload = try await api.call("POST", "/v1/settings/reload").json
            #expect(reload["changed"]?.elements.compactMap(\.string) == ["peer.name", "peer.port", "discovery.info.room"])
            #expect(reload["needs_restart"]?.elements.compactMap(\.string) == ["peer.port"])
            let name = try await Self.setting("peer.name", api)
            #expect(name.value == "desk" && name.source == .known(.file) && name.place == "\(server.configuration):2")
            let port = try await Self.setting("peer.port", api)
            #expect(port.value == "47110" && port.source == .known(.default) && port.next == "5000")
            #expect(try await Self.setting("discovery.info.room", api).value == "kitchen")
            try Data().write(to: file)
            #expect(try await api.call("POST", "/v1/settings/reload").status == 200)
            #expect(try await Self.setting("peer.port", api).next == nil)
        }
    }

    @Test func aPINIsHidden() async throws {
        try await APIServer.with { server in
            let api = APICaller(path: server.path)
            #expect(try await Self.setting("localsend.pin", api).value.isEmpty)
            try Data("[peer]\nname = alice\n[localsend]\nenabled = yes\npin = 9876543\n".utf8).write(
                to: URL(fileURLWithPath: server.configuration))
            let reload = try await api.call("POST", "/v1/settings/reload")
            #expect(try reload.json["changed"]?.elements.compactMap(\.string) == ["localsend.enabled", "localsend.pin"], "\(reload.text)")
            let pin = try await Self.setting("localsend.pin", api)
            #expect(pin.value == "(hidden)" && pin.source == .known(.file) && pin.place == "\(server.configuration):5")
            #expect(try await Self.setting("localsend.enabled", api).value == "yes")
            #expect(!(try await api.call("GET", "/v1/settings").text).contains("98765"))
        }
    }

    @Test func aRefusedReloadChangesNothing() async throws {
        try await APIServer.with { server in
            let api = APICaller(path: server.path)
            try Data("[peer]\nname = desk\nprot = 1\n".utf8).write(to: URL(fileURLWithPath: server.configuration))
            let refused = try await api.call("POST", "/v1/settings/reload")
            #expect(refused.status == 409 && refused.code == "conflict")
            #expect(try refused.json["detail"]?.string?.hasPrefix("\(server.configuration):3: unknown key 'prot'") == true)
            #expect(try await Self.setting("peer.name", api).value == "alice")
        }
    }

    /// Requests that arrive together are all answered, and a daemon that stops answers too.
    @Test func everyRequestIsAnswered() async throws {
        try await APIServer.with { server in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<8 { group.addTask { _ = try await server.settings.reload() } }
                try await group.waitForAll()
            }
            server.settings.end()
            let error = await #expect(throws: EarshotError.self) { try await server.settings.reload() }
            #expect(error?.code == .unavailable)
        }
    }
}
