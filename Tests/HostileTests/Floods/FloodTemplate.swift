import EarshotWire
import Glibc
import NIOCore

/// The content of a flood.
enum FloodKind: Sendable, CustomStringConvertible {
    /// Runs of one type of frame only.
    case alone(FrameType)
    /// Frames with numbers that a receiver skips.
    case unknown
    /// Runs of every type in a random order by the seed, except those that would close the connection.
    case mixed(seed: UInt64)
    /// Single frames of every type in a random order by the seed.
    case random(seed: UInt64)

    /// One kind for each type of frame, and the unknown ones.
    static let eachAlone = FrameType.allCases.map(Self.alone) + [.unknown]

    var description: String {
        switch self {
        case .alone(let type): "\(type)"
        case .unknown: "unknown types"
        case .mixed(let seed): "mixed, seed \(seed)"
        case .random(let seed): "random order, seed \(seed)"
        }
    }
}

/// The bytes of a flood, encoded once, with the positions of the run numbers. A peer sends them repeatedly and increments the numbers each
/// time, so that hardly any identifier is repeated.
struct FloodTemplate: Sendable {
    /// The size after which a template is long enough, in bytes.
    private static let enough = 128 * 1024
    /// The number of runs after which it is long enough.
    private static let enoughRuns: UInt32 = 2048

    let bytes: [UInt8]
    /// The positions of run numbers, with the numbers.
    let marks: [(offset: Int, number: UInt32)]
    /// The positions of the peer's session.
    let sessions: [Int]
    let runs: UInt32
    /// Whether the template opens a data connection, and so needs one to be sent.
    let isForData: Bool

    init(_ kind: FloodKind, _ words: FloodWords) throws {
        let isForData = if case .alone(.dataAttach) = kind { true } else { false }
        try self.init(isForData: isForData) { builder throws in try builder.add(kind, words) }
    }

    /// Creates a template of the runs of all numbers.
    init(repeating run: (UInt32) throws -> [Frame]) throws {
        try self.init(isForData: false) { builder throws in try builder.add(try run(builder.step)) }
    }

    private init(isForData: Bool, _ add: (inout FloodBuilder) throws -> Void) throws {
        var builder = FloodBuilder()
        while builder.buffer.readableBytes < Self.enough, builder.step < Self.enoughRuns {
            try add(&builder)
            builder.step += 1
        }
        self.bytes = Array(builder.buffer.readableBytesView)
        self.runs = builder.step
        self.marks = Self.places(of: FloodWords.mark.bytes, in: self.bytes).map { [bytes] place in
            (place + 4, bytes[(place + 4)..<(place + 8)].reduce(0) { $0 << 8 | UInt32($1) })
        }
        self.sessions = Self.places(of: FloodWords.session.high.bytes + FloodWords.session.low.bytes, in: self.bytes)
        self.isForData = isForData
    }

    private static func places(of pattern: [UInt8], in bytes: [UInt8]) -> [Int] {
        guard let first = pattern.first else { return [] }
        var places: [Int] = []
        bytes.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress else { return }
            var place = 0
            while place + pattern.count <= bytes.count, let found = memchr(base + place, CInt(first), bytes.count - place) {
                let start = UnsafeRawPointer(found) - base
                if start + pattern.count <= bytes.count, memcmp(found, pattern, pattern.count) == 0 { places.append(start) }
                place = start + 1
            }
        }
        return places
    }

    /// Writes the numbers of the runs, counted from `base`, and the peer's session, if it has one.
    func renew(_ copy: inout [UInt8], base: UInt32, session: SessionID?) {
        copy.withUnsafeMutableBytes { copy in
            for mark in self.marks { copy.storeBytes(of: (base &+ mark.number).bigEndian, toByteOffset: mark.offset, as: UInt32.self) }
            guard let session else { return }
            for place in self.sessions {
                copy.storeBytes(of: session.high.bigEndian, toByteOffset: place, as: UInt64.self)
                copy.storeBytes(of: session.low.bigEndian, toByteOffset: place + 8, as: UInt64.self)
            }
        }
    }
}

/// Builds a template's runs.
private struct FloodBuilder {
    private var machine = ConnectionStateMachine(
        localID: PeerID(subjectPublicKeyInfo: [1]), peerID: PeerID(subjectPublicKeyInfo: [2]))
    private var generator: SeededGenerator?
    private(set) var buffer = ByteBuffer()
    /// The number of the next run.
    var step: UInt32 = 0

    mutating func add(_ kind: FloodKind, _ words: FloodWords) throws {
        switch kind {
        case .alone(let type): try self.add(try words.frames(of: type, self.step))
        case .unknown: self.addUnknown()
        case .mixed(let seed):
            guard let type = self.draw(seed) else { return self.addUnknown() }
            // A few consecutive frames have the same subject.
            var run = try words.frames(of: type, self.step / 4)
            if self.step % 2 == 0 { run = Array(run.suffix(1)) }
            guard self.isTaken(run) else { return }
            try self.add(run)
        case .random(let seed):
            guard let type = self.draw(seed) else { return self.addUnknown() }
            // One frame of a run: a cancel precedes its offer as often as it follows it.
            try self.add(Array(try words.frames(of: type, self.step / 8).suffix(1)))
        }
    }

    /// Draws a type of frame, or `nil` for an unknown one.
    private mutating func draw(_ seed: UInt64) -> FrameType? {
        var generator = self.generator ?? SeededGenerator(seed: seed)
        defer { self.generator = generator }
        let place = Int.random(in: 0...FrameType.allCases.count, using: &generator)
        return place < FrameType.allCases.count ? FrameType.allCases[place] : nil
    }

    /// Whether the receiver's state machine accepts the run and continues.
    private mutating func isTaken(_ run: [Frame]) -> Bool {
        var machine = self.machine
        for frame in run {
            switch frame {
            case .refusal, .goodbye: return false
            default: break
            }
            if case .violation = machine.received(frame) { return false }
        }
        self.machine = machine
        return true
    }

    mutating func add(_ run: [Frame]) throws {
        for frame in run { try FrameEncoder.encode(frame, into: &self.buffer) }
    }

    private mutating func addUnknown() { self.buffer.writeBytes(FloodWords.unknown(self.step)) }
}

/// A random number generator that repeats its numbers for a seed (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { self.state = seed }

    mutating func next() -> UInt64 {
        self.state &+= 0x9E37_79B9_7F4A_7C15
        var value = self.state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}

extension FixedWidthInteger {
    /// The bytes in network order.
    fileprivate var bytes: [UInt8] { withUnsafeBytes(of: self.bigEndian) { Array($0) } }
}
