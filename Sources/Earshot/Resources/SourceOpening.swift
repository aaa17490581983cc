package import EarshotSafety
internal import EarshotWaiting
internal import Synchronization

/// Opens sources, each on a temporary thread. Walking a large directory takes a while, and a path on a server that is gone may block
/// forever. Neither delays other paths.
///
/// A thread that waits for such a server cannot be ended. The number of threads is therefore limited, and so is the number for one path,
/// which a program may request repeatedly. Further requests wait without a thread.
final class SourceOpening: Sendable {
    /// The maximum number of paths that are opened at once. It allows for transfers to eight peers, all from one server that is gone.
    static let limit = 64
    /// The maximum number of these for one path.
    static let pathLimit = 4
    /// The maximum number of files that callers hold open and that are examined at once. A hostile caller can pass many files whose server does
    /// not answer. The other openings are left for paths.
    static let heldLimit = 32

    /// An opened source.
    struct Opened: Sendable {
        let source: any ResourceSource
        let name: String
        let kind: Resource.Kind
        let identity: FileStatus.Identity
    }

    /// The place of a source.
    enum Place: Sendable, Hashable {
        case path(String)
        /// A file that is open already, and is examined.
        case file(HeldFile)

        var isHeld: Bool { if case .file = self { true } else { false } }
    }

    /// A place and its waiting caller.
    private struct Request: Sendable {
        let place: Place
        let answer: OneShot<Result<Opened, EarshotError>>
    }

    private struct State {
        /// The number of paths that are being opened.
        var count = 0
        /// The number of threads by place. No entry is 0.
        var counts: [Place: Int] = [:]
        /// Waiting requests, in order.
        var waiting: [Request] = []

        /// Starts a request. Returns `false` if it has to wait.
        mutating func begin(_ request: Request) -> Bool {
            guard self.hasRoom(for: request.place) else {
                self.waiting.append(request)
                return false
            }
            self.take(request.place)
            return true
        }

        /// Ends a request. Returns the waiting request that starts instead; there is never room for two.
        mutating func end(_ place: Place) -> Request? {
            self.count -= 1
            let left = (self.counts[place] ?? 1) - 1
            self.counts[place] = left > 0 ? left : nil
            guard let index = self.waiting.firstIndex(where: { self.hasRoom(for: $0.place) }) else { return nil }
            let next = self.waiting.remove(at: index)
            self.take(next.place)
            return next
        }

        private func hasRoom(for place: Place) -> Bool {
            guard self.count < SourceOpening.limit, self.counts[place, default: 0] < SourceOpening.pathLimit else { return false }
            guard place.isHeld else { return true }
            return self.counts.reduce(0) { $1.key.isHeld ? $0 + $1.value : $0 } < SourceOpening.heldLimit
        }

        private mutating func take(_ place: Place) {
            self.count += 1
            self.counts[place, default: 0] += 1
        }
    }

    private static let shared = SourceOpening { (place: Place) throws(EarshotError) -> Opened in try SourceOpening.opened(place) }

    private let state = Mutex(State())
    private let look: @Sendable (Place) throws(EarshotError) -> Opened

    /// Creates an opener with `look`, which opens a path and may block.
    init(_ look: @escaping @Sendable (Place) throws(EarshotError) -> Opened) {
        self.look = look
    }

    /// Opens a file or a directory.
    /// - Throws: `invalid-source` if it is neither or cannot be read; `name-rejected`; as `TreeSource`; `unavailable` without a thread.
    static func open(_ place: Place) async throws(EarshotError) -> Opened { try await Self.shared.open(place) }

    /// Opens a place with `look`. If the caller's task is cancelled, the caller does not wait for a thread that hangs.
    /// - Throws: as ``open(_:)``; `cancelled`.
    func open(_ place: Place) async throws(EarshotError) -> Opened {
        let request = Request(place: place, answer: OneShot())
        if self.state.withLock({ $0.begin(request) }) { self.start(request) }
        let result = await withTaskCancellationHandler {
            await request.answer.value()
        } onCancel: {
            self.state.withLock { state in state.waiting.removeAll { $0.answer === request.answer } }
            request.answer.settle(.failure(EarshotError(.cancelled, "its caller has left")))
        }
        return try result.get()
    }

    /// Starts a request on a new thread. If no thread can be created, that is the answer, also for the waiting requests that would start
    /// next.
    private func start(_ first: Request) {
        var next: Request? = first
        while let request = next {
            do throws(EarshotError) {
                let thread = try ThreadExecutor(name: "earshot-walk")
                thread.run { self.work(request) }
                // Ends the thread after this work.
                thread.stop()
                return
            } catch {
                next = self.state.withLock { $0.end(request.place) }
                request.answer.settle(.failure(error))
            }
        }
    }

    /// Handles requests one after another, until none waits.
    private func work(_ first: Request) {
        var next: Request? = first
        while let request = next {
            let result = Result { () throws(EarshotError) in try self.look(request.place) }
            next = self.state.withLock { $0.end(request.place) }
            request.answer.settle(result)
        }
    }

    private static func opened(_ place: Place) throws(EarshotError) -> Opened {
        let path: String
        switch place {
        case .path(let name): path = name
        case .file(let held):
            let file = try SourceFile(held.file, name: held.name)
            return Opened(source: file, name: file.name, kind: .file, identity: file.identity)
        }
        guard !path.utf8.contains(0), FileStatus(path: path)?.kind == .directory else {
            let file = try SourceFile(path: path)
            return Opened(source: file, name: file.name, kind: .file, identity: file.identity)
        }
        let tree = try TreeSource(path: path)
        return Opened(source: tree, name: tree.name, kind: .directory, identity: tree.identity)
    }
}

/// An open file that the daemon received from a caller, with its name for the receiver.
package final class HeldFile: Sendable, Hashable {
    let file: OpenFile
    let name: String

    package init(_ file: OpenFile, name: String) {
        self.file = file
        self.name = name
    }

    package static func == (first: HeldFile, second: HeldFile) -> Bool { first === second }

    package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
