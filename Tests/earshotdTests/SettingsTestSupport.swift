import Earshot
import EarshotDiscovery
import Foundation
import Logging
import Testing

@testable import earshotd

/// A directory with one settings file, gone with the value's scope.
func withFile<Result>(_ text: String, _ body: (String) throws -> Result) throws -> Result {
    try withFile(Array(text.utf8), body)
}

func withFile<Result>(_ bytes: [UInt8], _ body: (String) throws -> Result) throws -> Result {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent("earshotd-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    let path = directory.appendingPathComponent("earshotd.conf").path
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    return try body(path)
}

func load(
    flags: SettingsLoader.Flags = .init(), environment: [String: String] = [:], hostName: String = "kitchen.example.org"
) throws(SettingsError) -> SettingsLoader.Result {
    var environment = environment
    environment["XDG_RUNTIME_DIR"] = environment["XDG_RUNTIME_DIR"] ?? "/run/user/1000"
    environment["HOME"] = environment["HOME"] ?? "/nonexistent"
    return try SettingsLoader(flags: flags, environment: environment, isRoot: false, hostName: hostName).load()
}

func load(file text: String) throws -> Settings {
    try withFile(text) { try load(flags: .init(config: $0)).settings }
}
