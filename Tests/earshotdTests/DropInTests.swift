import Earshot
import EarshotDiscovery
import Foundation
import Logging
import Testing

@testable import earshotd

/// A settings file with drop-ins beside it.
private func withDropIns<Result>(_ file: String?, _ dropIns: [String: String], _ body: (String) throws -> Result) throws -> Result {
    try withFile(file ?? "") { path in
        if file == nil { try FileManager.default.removeItem(atPath: path) }
        try FileManager.default.createDirectory(atPath: path + ".d", withIntermediateDirectories: false)
        for (name, text) in dropIns { try Data(text.utf8).write(to: URL(fileURLWithPath: "\(path).d/\(name)")) }
        return try body(path)
    }
}

@Suite struct DropInTests {
    @Test func theyComeAfterTheFileInTheOrderOfTheirNames() throws {
        let dropIns = [
            "10-b.conf": "[peer]\nname = ten\nport = 10\n[discovery.info]\nroom = ten\n", "9-a.conf": "[peer]\nname = nine\n",
            "B.conf": "[peer]\nport =\n", "notes.txt": "not a setting", ".hidden.conf": "nor this",
        ]
        try withDropIns("[peer]\nname = file\nport = 5000\n[discovery.info]\nroom = file\nrack = 1\n", dropIns) { path in
            let result = try load(flags: .init(config: path))
            #expect(result.files == [path, "\(path).d/10-b.conf", "\(path).d/9-a.conf", "\(path).d/B.conf"])
            #expect("\(result.settings.node.displayName)" == "nine")
            #expect(result.settings.node.port == 47110 && !result.settings.node.portIsFixed)
            #expect(result.settings.node.discoveryInfo == ["room": "ten", "rack": "1"])
        }
    }

    @Test func aFaultIsNamedWithTheDropInsLine() throws {
        try withDropIns("[peer]\nname = file\n", ["a.conf": "[peer]\nname = a\n", "b.conf": "# b\n[peer]\nnmae = b\n"]) { path in
            let error = #expect(throws: SettingsError.self) { try load(flags: .init(config: path)) }
            #expect(error?.origin == .file(path: "\(path).d/b.conf", line: 3))
            #expect(error?.exitCode == 78)
        }
        // A value that a drop-in replaces must still be valid.
        try withDropIns("[peer]\nport = x\n", ["a.conf": "[peer]\nport = 5000\n"]) { path in
            let error = #expect(throws: SettingsError.self) { try load(flags: .init(config: path)) }
            #expect(error?.origin == .file(path: path, line: 2))
        }
    }

    @Test func theyCountWithoutAFileToo() throws {
        try withDropIns(nil, ["a.conf": "[peer]\nname = alone\n"]) { path in
            let directory = URL(fileURLWithPath: path).deletingLastPathComponent().path
            let result = try load(environment: ["CONFIGURATION_DIRECTORY": directory])
            #expect("\(result.settings.node.displayName)" == "alone")
            #expect(result.files == ["\(path).d/a.conf"])
        }
    }

    @Test func oneThatCannotBeReadIsAnError() throws {
        try withDropIns("", [:]) { path in
            try FileManager.default.createSymbolicLink(atPath: "\(path).d/a.conf", withDestinationPath: "\(path).gone")
            let error = #expect(throws: SettingsError.self) { try load(flags: .init(config: path)) }
            #expect(error?.message == "cannot read \(path).d/a.conf: no such file or directory")
            #expect(error?.exitCode == 78)
        }
        try withDropIns("", [:]) { path in
            try FileManager.default.createDirectory(atPath: "\(path).d/a.conf", withIntermediateDirectories: false)
            #expect(throws: SettingsError.self) { try load(flags: .init(config: path)) }
        }
    }

    @Test func aLinkToNullMasksOne() throws {
        try withDropIns("[peer]\nname = file\n", [:]) { path in
            try FileManager.default.createSymbolicLink(atPath: "\(path).d/a.conf", withDestinationPath: "/dev/null")
            #expect(try "\(load(flags: .init(config: path)).settings.node.displayName)" == "file")
        }
    }

    @Test func theirNumberIsBounded() throws {
        for (count, isAllowed) in [(SettingsFiles.dropInLimit, true), (SettingsFiles.dropInLimit + 1, false)] {
            let dropIns = Dictionary(uniqueKeysWithValues: (0..<count).map { ("\($0).conf", "") })
            try withDropIns("", dropIns) { path in
                let result = Result { try load(flags: .init(config: path)) }
                #expect((try? result.get().files.count) == (isAllowed ? count + 1 : nil))
            }
        }
    }
}
