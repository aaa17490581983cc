/// A run of a world: its machines and the times of its actions. The same schedule gives the same run, in every process.
package struct Schedule: Sendable, Hashable {
    /// The seed of everything that no action determines: delays, the cores' random draws, the answers of hostile peers.
    package var seed: UInt64
    package var honest: Int
    package var hostile: Int
    /// The number of LocalSend devices.
    package var devices: Int
    package var actions: [Action] = []
    /// The end of the faults, in milliseconds.
    package var end = 0

    package var machines: Int { self.honest + self.hostile }

    package init(seed: UInt64, honest: Int, hostile: Int, devices: Int = 0) {
        self.seed = seed
        self.honest = honest
        self.hostile = hostile
        self.devices = devices
    }

    // MARK: Text form

    /// The error for a file that is not a schedule.
    package struct Unreadable: Error, CustomStringConvertible {
        package let description: String
    }

    /// The text form, with a line each for the seed, the numbers of machines and of devices if there are any, the actions in order, and the
    /// end.
    package var text: String {
        var lines = ["seed \(self.seed)", "honest \(self.honest)", "hostile \(self.hostile)"]
        if self.devices > 0 { lines.append("devices \(self.devices)") }
        for action in self.actions {
            lines.append((["\(action.milliseconds)", action.verb.rawValue] + action.arguments.map(\.description)).joined(separator: " "))
        }
        lines.append("end \(self.end)")
        return lines.joined(separator: "\n") + "\n"
    }

    /// Parses the text form. Lines that begin with # are comments. Anything unknown is an error, so that a recorded failure never silently
    /// turns into a different run.
    package init(text: String) throws(Unreadable) {
        var lines = text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { $0.split(separator: " ") }[...]
        func header(_ name: Substring) throws(Unreadable) -> UInt64 {
            guard let line = lines.popFirst(), line.count == 2, line[0] == name, let value = UInt64(line[1]) else {
                throw Unreadable(description: "a schedule begins with seed, honest and hostile, and \(name) is not there")
            }
            return value
        }
        self.init(seed: try header("seed"), honest: Int(try header("honest")), hostile: Int(try header("hostile")))
        if lines.first?.first == "devices" { self.devices = Int(try header("devices")) }
        guard self.devices <= 16 else { throw Unreadable(description: "a world has at most 16 devices") }
        guard (2...16).contains(self.machines), self.honest >= 1 else { throw Unreadable(description: "a world has 2 to 16 machines") }
        guard let last = lines.popLast(), last.count == 2, last[0] == "end", let end = Int(last[1]) else {
            throw Unreadable(description: "a schedule ends with its end")
        }
        self.end = end
        for line in lines {
            guard line.count >= 2, let time = Int(line[0]), let verb = Action.Verb(rawValue: String(line[1])) else {
                throw Unreadable(description: "\"\(line.joined(separator: " "))\" is no action")
            }
            let arguments = line.dropFirst(2).compactMap { Int($0) }
            guard arguments.count == line.count - 2, arguments.count == verb.arity, time >= self.actions.last?.milliseconds ?? 0,
                time <= end
            else { throw Unreadable(description: "\"\(line.joined(separator: " "))\" has wrong numbers") }
            self.actions.append(Action(time, verb, arguments))
        }
    }
}
