import Foundation
import Testing

/// The core keeps its rules. If a change breaks one, the failure names the rule, the file and the line.
@Suite struct CoreRulesTests {
    private static func sources() throws -> [(name: String, text: String)] {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let place = root.appendingPathComponent("Sources/EarshotCore")
        let names = try FileManager.default.subpathsOfDirectory(atPath: place.path).filter { $0.hasSuffix(".swift") }.sorted()
        return try names.map { ($0, try String(contentsOf: place.appendingPathComponent($0), encoding: .utf8)) }
    }

    @Test func theCoreHoldsToItsRules() throws {
        let sources = try Self.sources()
        #expect(sources.count > 30, "these are not all")
        let rules = CoreRules(sources: sources.map(\.text))
        let faults = sources.flatMap { source in rules.faults(in: source.text).map { "\(source.name):\($0)" } }
        #expect(faults.isEmpty, "\(faults.joined(separator: "\n"))")
    }

    // MARK: The rules themselves

    private func found(_ source: String) -> [CoreRules.Rule] { CoreRules(sources: [source]).faults(in: source).map(\.rule) }

    private static let forbidden: [(String, CoreRules.Rule)] = [
        ("import Foundation", .imports), ("package import FoundationEssentials", .imports),
        ("@_exported public import Earshot", .imports), ("import struct Foundation.Date", .imports),
        ("    import Glibc", .imports), ("import Logging", .imports), ("import NIOPosix", .imports),
        ("import Synchronization", .imports), ("@preconcurrency import CLinux", .imports),
        ("let now = ContinuousClock.now", .clock), ("let at: SuspendingClock.Instant", .clock), ("let at = Date()", .clock),
        ("let at: NIODeadline", .clock), ("clock_gettime(CLOCK_BOOTTIME, &time)", .clock), ("DispatchTime.now()", .clock),
        ("let at = time(nil)", .clock), ("let delay: TimeAmount", .clock), ("let timer: Scheduled<Void>", .clock),
        ("let id = MessageID.random()", .randomness), ("let x = UInt64.random(in: 0..<3)", .randomness),
        ("var generator = SystemRandomNumberGenerator()", .randomness), ("arc4random()", .randomness),
        ("peers.shuffle()", .randomness), ("let id = MessageID.timeOrdered(secondsSince1970: 3)", .randomness),
        ("let token = DataToken()", .randomness), ("let one = list.randomElement()", .randomness),
        ("let id = UUID()", .randomness), ("Task { }", .task), ("func x() async {", .task), ("x = await y", .task),
        ("let x: AsyncStream<Int>", .task), ("let x: CheckedContinuation<Void, Never>", .task),
        ("withCheckedContinuation { _ in }", .task), ("actor Node {", .task), ("let waiter: Continuation", .task),
        ("let x: AsyncStream<Int>.Continuation", .task), ("DispatchQueue.main", .task), ("let state = Mutex(0)", .lock),
        ("let lock = NSLock()", .lock), ("let count = Atomic(0)", .lock), ("let lock: NIOLock", .lock),
        ("pthread_mutex_lock(&x)", .lock), ("let state: NIOLockedValueBox<Int>", .lock),
        ("let channel: any Channel", .inputOrOutput), ("let loop: any EventLoop", .inputOrOutput),
        ("let x: EventLoopFuture<Void>", .inputOrOutput), ("let x: ChannelHandlerContext", .inputOrOutput),
        ("let file: FileHandle", .inputOrOutput), ("let file = open(path, 0)", .inputOrOutput),
        ("let s = socket(1, 2, 3)", .inputOrOutput), ("let x: NIOAsyncTestingEventLoop", .inputOrOutput),
        ("print(x)", .inputOrOutput), ("let x: SocketAddress", .inputOrOutput), ("let id = ObjectIdentifier(self)", .address),
        ("x.hashValue", .address), ("var hasher = Hasher()", .address), ("let text = \"at \\(Date())\"", .clock),
        ("let text = \"\"\"\n    at \\(Date()) sharp\n    \"\"\"", .clock),
    ]

    /// Each forbidden name is found when it is alone in a line of code.
    @Test(arguments: Self.forbidden) func eachForbiddenThingIsFound(_ line: String, _ rule: CoreRules.Rule) {
        let found = Set(self.found(line))
        #expect(found.contains(rule), "\(line)")
    }

    private static let permitted = [
        "import DequeModule", "package import EarshotWire", "package import NIOCore", "import OrderedCollections",
        "internal import HeapModule", "// Task, Date and await", "/// What `ContinuousClock` says.",
        "/* Date /* Mutex */ Task */ let x = 1", "let text = \"a Task, Date()\"",
        "let text = \"\"\"\n    a Task \"and\" Date()\n    \"\"\"", "let text = \"\\\"\\(name) Task\"",
        "case .open(let piece): .open(piece)", "case open(ByteBuffer?)", "mutating func open(_ x: Int) {",
        "let update = dated.mutex", "var generator: some RandomNumberGenerator",
        "MessageID.timeOrdered(secondsSince1970: 3, random: generator.next())", "UInt8.random(in: 0...9, using: &generator)", "",
        "public func hash(into hasher: inout Hasher) {",
    ]

    @Test(arguments: Self.permitted) func whatIsNoneOfThemIsNot(_ line: String) {
        #expect(self.found(line) == [], "\(line)")
    }

    @Test func aFaultIsWhereItIs() {
        let source = "/// Words.\nlet text = \"\"\"\n    x\n    \"\"\"\nlet at = Date()\n"
        #expect(CoreRules(sources: [source]).faults(in: source) == [CoreRules.Fault(line: 5, rule: .clock, what: "Date")])
    }

    @Test func aFileHas400Lines() {
        #expect(self.found(String(repeating: "// x\n", count: 400)) == [])
        #expect(self.found(String(repeating: "// x\n", count: 401)) == [.length])
    }

    // MARK: Walks over tables

    private static let declarations = """
        typealias Known = [PeerID: Int]
        private var rows: [PeerID: Row] = [:]
        private var seen: Set<MessageID> = []
        var nested: [PeerID: Set<MessageID>] = [:]
        var known = Known()
        var optional: [PeerID: Row]?
        var made = Set([1, 2])
        func all(of peer: PeerID) -> Set<PeerID> { [] }
        private var list: [Row] = []
        private var ordered: OrderedDictionary<PeerID, Row> = [:]

        """

    private static let walks = [
        "for (peer, row) in self.rows { }", "for row in rows where row.isOpen {", "for row in self.rows.values {",
        "for key in rows.keys {", "self.rows.map { $0 }", "self.rows.values.map(\\.id)", "self.rows.keys.sorted { $0 < $1 }",
        "self.rows.filter { $0.value > now }", "self.rows.values.sorted()", "self.rows.first", "self.seen.first { $0 == id }",
        "self.seen.sorted()", "self.seen.min()", "self.seen.contains { $0 == id }", "self.seen.contains(where: isIt)",
        "self.seen.count { $0 == id }", "self.seen.removeAll { $0 == id }", "let ids = Array(self.seen)",
        "let ids = Deque(self.rows.values)", "ids += self.seen", "ids.append(contentsOf: self.seen)",
        "let ids = [PeerID](self.seen)", "self.nested[peer]?.map { $0 }", "for id in self.nested[peer] ?? [] {",
        "self.nested[peer, default: []].sorted()", "self.known.forEach { }", "self.optional?.values.map { $0 }",
        "self.optional!.filter { $0 }", "self.made.popFirst()", "self.all(of: peer).map { $0 }", "for id in self.all(of: peer) {",
        "let copy = self.rows\nfor row in copy {", "guard let own = self.nested[peer] else { return }\nreturn own.map { $0 }",
        "self.rows\n    .values\n    .map { $0 }", "func x(_ given: [PeerID: Int]) {\n    given.map { $0 }",
        "let held = list.reduce(into: [:]) { $0[$1] = 1 }\nheld.max()", "let text = \"\\(self.seen.map { $0 })\"",
        "zip(self.seen, list)", "self.rows.lazy", "self.rows.reduce(0) { $0 }",
    ]

    @Test(arguments: Self.walks) func aWalkIsFound(_ line: String) {
        #expect(Set(self.found(Self.declarations + line)) == [.walk], "\(line)")
    }

    private static let looks = [
        "for peer in self.rows.keys.sorted() {", "self.rows.keys.sorted().map { $0 }", "self.rows[peer]",
        "self.rows[peer]?.list.map { $0 }", "self.rows[peer].map { $0 }", "self.seen.contains(id)", "self.seen.insert(id)",
        "self.seen.count == 3", "self.rows.removeAll()", "self.nested[peer]?.contains(id) == true",
        "self.nested[peer, default: []].insert(id)", "self.rows.isEmpty", "self.rows.values.count", "self.list.map { $0 }",
        "for row in self.list {", "for (peer, row) in self.ordered { }", "self.ordered.values.map { $0 }",
        "// self.rows.map { $0 }", "let copy = self.rows", "self.seen.union(other)", "self.seen.formUnion(list)",
        "x(rows: self.rows)",
    ]

    @Test(arguments: Self.looks) func whatIsLookedIntoIsNot(_ line: String) {
        #expect(self.found(Self.declarations + line) == [], "\(line)")
    }

    @Test func whatAnotherFileDeclaresIsKnownToo() {
        let rules = CoreRules(sources: ["package var rows: [PeerID: Int] = [:]\nprivate var own: Set<Int> = []\n"])
        #expect(rules.faults(in: "record.rows.map { $0 }").map(\.rule) == [.walk])
        #expect(rules.faults(in: "record.own.map { $0 }").isEmpty, "that is another one")
    }

    @Test func aReasonPermitsAWalk() {
        func found(_ comment: String) -> [CoreRules.Rule] { self.found(Self.declarations + "self.seen.min()  // \(comment)") }
        #expect(found("order does not show: the least is the same") == [])
        #expect(found("order does not show") == [.reason])
        #expect(found("order does not show: ") == [.reason])
        #expect(found("order does not show: because") == [.reason])
        #expect(found("harmless") == [.walk])
        #expect(self.found("let x = 1  // order does not show: there is none") == [.reason], "it would permit what comes there later")
    }

    // MARK: Storage

    /// The structs whose methods alone change what they store.
    @Test func onlyAConcernWritesItsStorage() throws {
        let sources = try Self.sources()
        let storage = OpenStorage(in: sources.map { SourceLine.lines(of: $0.text) })
        let faults = storage.faults.map { "\(sources[$0.file].name):\($0.fault)" }
        #expect(faults.isEmpty, "\(faults.joined(separator: "\n"))")
        #expect(storage.judged.isSuperset(of: ["PeerRecord.Concerns", "GroupTies", "MessageTraffic", "OutgoingMessage", "HeldGroup"]))
    }

    private func storage(_ source: String) -> [String] {
        OpenStorage(in: [SourceLine.lines(of: Self.core), SourceLine.lines(of: source)]).faults.map(\.fault.what)
    }

    private static let core = """
        package struct NodeCore: Sendable {
            var table = Table<Row>()
            private var rows: [PeerID: Row] = [:]
            private(set) var count = 0
        }
        struct Table<Row> {
            private var rows: [Row] = []
        }
        struct Part {
            private(set) var state = 0
            private struct Slot { var row = 0 }
        }
        """

    private static let planted: [(String, String)] = [
        ("struct Row {\n    var isOpen = false\n}", "Row.isOpen is open"),
        ("struct Row {\n    package internal(set) var part: Part?\n}", "Row.part is open"),
        ("struct Row {\n    var parts: [Part] = []\n}", "Row.parts is open"),
        ("struct Row {\n    var part: Part\n    private let deep: Deep\n}\nstruct Deep {\n    var x = 0\n}", "Deep.x is open"),
        ("struct Row {\n    struct Inner {\n        var x: Int\n    }\n    var inner = Inner()\n}", "Row.Inner.x is open"),
        ("struct Row {\n    var peer: StoredPeer\n}\nstruct StoredPeer {\n    var name: String\n}", "Row.peer is open"),
        ("extension NodeCore {\n    func x() {\n        self.table[id]?.part = 3\n    }\n}", "self.table[id]?.part is assigned"),
        ("extension NodeCore {\n    func x() { if y { self.table[id] = nil } }\n}", "self.table[id] is assigned"),
        ("extension NodeCore {\n    func x() {\n        self.table.count += 1\n    }\n}", "self.table.count is assigned"),
    ]

    @Test(arguments: Self.planted) func openStorageIsFound(_ source: String, _ what: String) {
        #expect(self.storage(source) == [what], "\(source)")
    }

    private static let closed = [
        "struct Row {\n    private(set) var x = 0\n    fileprivate(set) var y: Int\n    var z: Int { self.x }\n    let w: Int\n}",
        "struct Row {\n    var part = Part()\n    var other: Part\n    static var z = 0\n}",
        "struct Row {\n    func x() {\n        var y = 0\n    }\n    private struct Slot {\n        var row = 0\n    }\n}",
        "struct Another {\n    var x = 0\n    func y() { self.rows[id] = nil }\n}",
        "extension NodeCore {\n    func x() {\n        self.count = 3\n        if self.table[id]?.x == nil, let y = self.table.z {}\n    }\n}",
    ]

    @Test(arguments: Self.closed) func closedStorageIsNot(_ source: String) {
        #expect(self.storage(source) == [], "\(source)")
    }
}
