import FoundationEssentials
import Glibc
import Simulation

// Plays worlds; Tests/simulate builds it, and says how it is used.

/// Writes a line to standard error. With --trace, standard output has only the inputs and effects.
func say(_ words: String) {
    FileHandles.error.write(words + "\n")
}

enum FileHandles {
    struct Output {
        let descriptor: Int32

        func write(_ text: String) {
            var text = text
            text.withUTF8 { bytes in
                var rest = UnsafeRawBufferPointer(bytes)
                while let base = rest.baseAddress, rest.count > 0 {
                    let count = Glibc.write(self.descriptor, base, rest.count)
                    guard count > 0 else { return }
                    rest = UnsafeRawBufferPointer(rebasing: rest[count...])
                }
            }
        }
    }

    static let output = Output(descriptor: 1)
    static let error = Output(descriptor: 2)
}

struct Options {
    /// The time to play. If neither `seconds` nor `worlds` is given, only the seed's world is played.
    var seconds: Int?
    var worlds: Int?
    var seed: UInt64?
    var nodes: Int?
    var isTraced = false
    var found = ".build/simulation"
    var replays: [String] = []

    init(_ arguments: [String]) {
        var rest = arguments[...]
        func number<Number: FixedWidthInteger>(_ name: String, _ range: ClosedRange<Number>) -> Number {
            guard let text = rest.popFirst(), let value = Number(text), range.contains(value) else {
                say("simulate: \(name) needs a number from \(range.lowerBound) to \(range.upperBound)")
                exit(64)
            }
            return value
        }
        while let argument = rest.popFirst() {
            switch argument {
            case "--seconds": self.seconds = number("--seconds", 1...1_000_000)
            case "--worlds": self.worlds = number("--worlds", 1...1_000_000)
            case "--seed": self.seed = number("--seed", 0 ... .max)
            case "--nodes": self.nodes = number("--nodes", 2...8)
            case "--trace": self.isTraced = true
            case "--found": self.found = rest.popFirst() ?? self.found
            case _ where !argument.hasPrefix("-"): self.replays.append(argument)
            default:
                say("simulate: \(argument) is no option")
                exit(64)
            }
        }
    }
}

/// The seed that is played now: named where the core traps.
nonisolated(unsafe) var seedUnderWay: UInt64 = 0
for signal in [SIGILL, SIGTRAP, SIGSEGV, SIGBUS] {
    Glibc.signal(signal) { number in
        FileHandles.error.write("simulate: signal \(number) in the world of seed \(seedUnderWay)\n")
        _exit(1)
    }
}

let options = Options(Array(CommandLine.arguments.dropFirst()))
let began = ContinuousClock.now
var lines: [String] = []
let trace = options.isTraced ? Trace { FileHandles.output.write($0 + "\n") } : nil
var simulator = Simulator(nodes: options.nodes, trace: trace)

@MainActor func finish(_ status: Int32) -> Never {
    let seconds = (ContinuousClock.now - began) / .seconds(1)
    let rate = Int(Double(simulator.steps) / max(seconds, 0.001))
    let line = "\(simulator.worlds) worlds, \(simulator.played) schedules, \(simulator.steps) steps, \(rate) steps a second"
    if options.isTraced { say(line) } else { FileHandles.output.write(line + "\n") }
    exit(status)
}

// Schedules that failed before are replayed first.
for path in options.replays {
    guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
        say("simulate: cannot read \(path)")
        exit(66)
    }
    do throws(Schedule.Unreadable) {
        if let violation = simulator.replay(try Schedule(text: text)) {
            say("\(path) fails: \(violation)")
            finish(1)
        }
    } catch {
        say("simulate: \(path): \(error)")
        exit(65)
    }
}

@MainActor func play(_ seed: UInt64) {
    seedUnderWay = seed
    guard let failure = simulator.play(seed: seed) else { return }
    say("seed \(seed) fails: \(failure.violation)")
    if !options.isTraced {
        let schedule = Simulator.shorten(failure)
        let path = "\(options.found)/\(failure.violation.invariant.rawValue)-\(seed)"
        let text = "# \(failure.violation.invariant.rawValue), found with seed \(seed)\n" + schedule.text
        do {
            try FileManager.default.createDirectory(atPath: options.found, withIntermediateDirectories: true)
            try Data(text.utf8).write(to: URL(filePath: path))
            say("shortened to \(schedule.actions.count) actions of \(failure.schedule.actions.count): \(path)")
        } catch {
            say("cannot write \(path): \(error)\n\(text)")
        }
    }
    finish(1)
}

if let seed = options.seed, options.seconds == nil, options.worlds == nil {
    play(seed)
} else if options.replays.isEmpty || options.seconds != nil || options.worlds != nil {
    var generator = SystemRandomNumberGenerator()
    var seed = options.seed ?? UInt64.random(in: 1...1_000_000_000, using: &generator)
    say("from seed \(seed) on")
    /// Worlds without a limit of time, where their number is given.
    let limit: Duration? = options.seconds.map { .seconds($0) } ?? (options.worlds == nil ? .seconds(60) : nil)
    while simulator.worlds < options.worlds ?? .max, limit.map({ ContinuousClock.now - began < $0 }) ?? true {
        play(seed)
        seed &+= 1
    }
    var isMissing = false
    for (name, count) in simulator.counts.all {
        FileHandles.output.write("\(name): \(count)\n")
        if count == 0 { isMissing = true }
    }
    if isMissing, options.nodes == nil {
        say("something that is to be tried never came up: see the zeros above")
        finish(1)
    }
}
finish(0)
