/// A run of a world: which machines, and what happens when. The same schedule is the same run, in every process.
package struct Schedule: Sendable, Hashable {
    /// Of everything that no action says: delays, what cores draw, how hostile peers answer.
    package var seed: UInt64
    package var honest: Int
    package var hostile: Int
    package var actions: [Action] = []
    /// When the faults stop, in milliseconds.
    package var end = 0

    package var machines: Int { self.honest + self.hostile }

    package init(seed: UInt64, honest: Int, hostile: Int) {
        self.seed = seed
        self.honest = honest
        self.hostile = hostile
    }

    // MARK: As text

    /// Why a file is no schedule.
    package struct Unreadable: Error, CustomStringConvertible {
        package let description: String
    }

    /// A line each: the seed, the machines, the actions in their order, the end.
    package var text: String {
        var lines = ["seed \(self.seed)", "honest \(self.honest)", "hostile \(self.hostile)"]
        for action in self.actions {
            lines.append((["\(action.milliseconds)", action.verb.rawValue] + action.arguments.map(\.description)).joined(separator: " "))
        }
        lines.append("end \(self.end)")
        return lines.joined(separator: "\n") + "\n"
    }

    /// Reads the same; lines that begin with # are for people. What is not understood is an error, so that no recorded failure turns into
    /// another run, or into none, unnoticed.
    package init(text: String) throws(Unreadable) {
        var lines = text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { $0.split(separator: " ") }[...]
        func header(_ name: Substring) throws(Unreadable) -> UInt64 {
            guard let line = lines.popFirst(), line.count == 2, line[0] == name, let value = UInt64(line[1]) else {
                throw Unreadable(description: "a schedule begins with seed, honest and hostile, and \(name) is not there")
            }
            return value
        }
        self.init(seed: try header("seed"), honest: Int(try header("honest")), hostile: Int(try header("hostile")))
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
