import APIDocument
import Foundation
import Testing

/// A phone with LocalSend on a host: a command of `Tests/LAN/localsend_peer`, which prints its events as JSON lines.
struct LocalSendDevice {
    /// How a device's command ended.
    struct End: CustomStringConvertible {
        /// The exit status: 0 as asked, 1 the daemon broke the protocol, 3 refused or not delivered.
        let status: Int32
        let events: [JSONValue]
        let description: String

        /// The statuses of the daemon's answers to a request, in order.
        func statuses(of request: String) -> [Int] {
            self.events.filter { $0["event"]?.string == "answer" && $0["request"]?.string == request }
                .compactMap { $0["status"]?.number.map { NSDecimalNumber(decimal: $0).intValue } }
        }
    }

    let running: Running

    private static func events(_ text: String) -> [JSONValue] {
        text.split(separator: "\n").compactMap { try? JSONValue(parsing: $0.utf8) }
    }

    /// The events of this name so far.
    func events(_ name: String) -> [JSONValue] {
        Self.events(self.running.outputSoFar()).filter { $0["event"]?.string == name }
    }

    /// Waits for the first event of this name that satisfies a condition.
    @discardableResult
    func event(
        _ name: String, within limit: Duration = .seconds(20), where condition: (JSONValue) -> Bool = { _ in true }
    ) async throws -> JSONValue {
        var found: JSONValue?
        let state = { self.running.outputSoFar() + self.running.errorsSoFar() }
        try await eventually(within: limit, "the device has the event \(name)", instead: state) {
            found = self.events(name).first(where: condition)
            return found != nil
        }
        return try #require(found)
    }

    /// The id that Earshot gives to this device.
    func id() async throws -> String { try #require(try await self.event("listening")["id"]?.string) }

    /// Waits for the end of the command.
    func end() async -> End {
        let outcome = await self.running.outcome()
        return End(status: outcome.status, events: Self.events(outcome.output), description: "\(outcome)")
    }
}

extension Laboratory {
    /// Starts a device; it keeps its certificate as long as the test lasts, under its name.
    func device(_ name: String, on host: String, global: [String] = [], _ arguments: [String]) async throws -> LocalSendDevice {
        if !FileManager.default.fileExists(atPath: "\(try Self.room())/hosts/\(host)") { try await self.host(host) }
        let program = URL(fileURLWithPath: Self.script).deletingLastPathComponent().appendingPathComponent("localsend_peer").path
        let own = ["--identity", "\(self.place)/\(name)-identity", "--alias", name, "--interface", "eth0"]
        return LocalSendDevice(running: try self.start(on: host, ["/usr/bin/python3", program] + own + global + arguments))
    }

    /// A daemon bob that speaks LocalSend, on the address `bobsAddress`.
    func bob(_ environment: [String: String] = [:]) async throws -> Daemon {
        try await self.daemon("bob", environment: environment.merging(["EARSHOT_LOCALSEND_ENABLED": "yes"]) { given, _ in given })
    }

    static let bobsAddress = "10.77.0.2"

    /// Has a phone on alice's host send to bob.
    func send(_ arguments: [String], from name: String = "phone") async throws -> LocalSendDevice {
        try await self.device(name, on: "alice", ["send", Self.bobsAddress, "53317"] + arguments)
    }

    /// Makes a directory with two files, one of them empty and in a folder of its own, and returns its path.
    func photos() throws -> String {
        let folder = "\(self.place)/photos"
        try FileManager.default.createDirectory(atPath: "\(folder)/inner", withIntermediateDirectories: true)
        try Data("one".utf8).write(to: URL(fileURLWithPath: "\(folder)/one.txt"))
        try Data().write(to: URL(fileURLWithPath: "\(folder)/inner/empty"))
        return folder
    }

    /// Makes a file of random bytes, and returns its path.
    func file(_ name: String, mebibytes: Int) async throws -> String {
        let path = "\(self.place)/\(name)"
        let made = try await Running(["/usr/bin/head", "-c", "\(mebibytes)M", "/dev/urandom"], log: path).status()
        try #require(made == 0)
        return path
    }
}

extension Daemon {
    /// The JSON of a command that must succeed.
    func json(_ arguments: String...) async throws -> JSONValue {
        let outcome = try await self.earshot(arguments + ["--json"])
        try #require(outcome.status == 0, "earshot \(arguments.joined(separator: " ")): \(outcome)")
        return try JSONValue(parsing: outcome.output.utf8)
    }

    /// Waits for an offer of a device.
    @discardableResult
    func awaitOffer() async throws -> JSONValue {
        var found: JSONValue?
        try await eventually("\(self.name) has an offer") {
            found = try await self.json("invitations")["invitations"]?.elements.first { $0["offer"] != nil }
            return found != nil
        }
        return try #require(found)
    }

    func awaitNoOffer() async throws {
        try await eventually("\(self.name) has no offer") { try await self.json("invitations")["invitations"]?.elements == [] }
    }

    /// The files of this daemon, each with its state.
    func fileStates() async throws -> [String: String] {
        let rows = try await self.json("file", "list")["resources"]?.elements ?? []
        return Dictionary(rows.map { ($0["name"]?.string ?? "", $0["state"]?.string ?? "") }) { first, _ in first }
    }

    func awaitFiles(_ states: [String: String]) async throws {
        var last: [String: String] = [:]
        try await eventually("\(self.name) has the files \(states)", instead: { "\(last)" }) {
            last = try await self.fileStates()
            return last == states
        }
    }

    /// Waits until a device is listed, and returns its row.
    @discardableResult
    func awaitDevice(_ id: String) async throws -> JSONValue {
        var found: JSONValue?
        try await eventually("\(self.name) lists \(id)") {
            found = try await self.json("peers")["peers"]?.elements.first { $0["id"]?.string == id }
            return found != nil
        }
        return try #require(found)
    }
}
