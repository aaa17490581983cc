internal import EarshotSafety
internal import Synchronization

/// Opens what is to be sent, each path on a thread that is there for as long as that takes: walking a large directory takes a while, and a
/// path on a server that has gone may wait for ever. Neither holds up the others.
///
/// Nothing ends a thread that waits for such a server. So there are few at a time, and fewer of one path, which a program may ask for again
/// and again; what is beyond waits, and costs no thread.
final class SourceOpening: Sendable {
    /// How many are being opened at a time: what is moving to eight peers, all of it on one server that has gone.
    static let limit = 64
    /// How many of them are one path.
    static let pathLimit = 4

    /// What a path leads to, opened to be sent.
    struct Opened: Sendable {
        let source: any ResourceSource
        let name: String
        let kind: Resource.Kind
        let identity: FileStatus.Identity
    }

    /// A path, and who waits for it.
    private struct Request: Sendable {
        let path: String
        let answer: CheckedContinuation<Result<Opened, EarshotError>, Never>
    }

    private struct State {
        /// How many are being opened.
        var count = 0
        /// The same by path; no path has 0.
        var counts: [String: Int] = [:]
        /// Those that wait for their turn, in order.
        var waiting: [Request] = []

        /// Takes a new one up; `false` where it has to wait.
        mutating func begin(_ request: Request) -> Bool {
            guard self.hasRoom(for: request.path) else {
                self.waiting.append(request)
                return false
            }
            self.take(request.path)
            return true
        }

        /// One is open, or cannot be opened; gives the one that begins instead. There is never room for two.
        mutating func end(_ path: String) -> Request? {
            self.count -= 1
            let left = (self.counts[path] ?? 1) - 1
            self.counts[path] = left > 0 ? left : nil
            guard let index = self.waiting.firstIndex(where: { self.hasRoom(for: $0.path) }) else { return nil }
            let next = self.waiting.remove(at: index)
            self.take(next.path)
            return next
        }

        private func hasRoom(for path: String) -> Bool {
            self.count < SourceOpening.limit && self.counts[path, default: 0] < SourceOpening.pathLimit
        }

        private mutating func take(_ path: String) {
            self.count += 1
            self.counts[path, default: 0] += 1
        }
    }

    private static let shared = SourceOpening { (path: String) throws(EarshotError) -> Opened in try SourceOpening.opened(path) }

    private let state = Mutex(State())
    private let look: @Sendable (String) throws(EarshotError) -> Opened

    /// `look` opens one, and may take as long as it likes.
    init(_ look: @escaping @Sendable (String) throws(EarshotError) -> Opened) {
        self.look = look
    }

    /// Opens a file or a directory.
    /// - Throws: `invalid-source` for what is neither or cannot be read; `name-rejected`; as `TreeSource`; `unavailable` without a thread.
    static func open(_ path: String) async throws(EarshotError) -> Opened { try await Self.shared.open(path) }

    /// The same, as `look` does it.
    func open(_ path: String) async throws(EarshotError) -> Opened {
        let result = await withCheckedContinuation { (answer: CheckedContinuation<Result<Opened, EarshotError>, Never>) in
            let request = Request(path: path, answer: answer)
            if self.state.withLock({ $0.begin(request) }) { self.start(request) }
        }
        return try result.get()
    }

    /// On a new thread. Where there is none to be had, that is the answer, also to those whose turn comes by it.
    private func start(_ first: Request) {
        var next: Request? = first
        while let request = next {
            do throws(EarshotError) {
                let thread = try ThreadExecutor(name: "earshot-walk")
                thread.run { self.work(request) }
                // Behind that.
                thread.stop()
                return
            } catch {
                next = self.state.withLock { $0.end(request.path) }
                request.answer.resume(returning: .failure(error))
            }
        }
    }

    /// One after the other, as long as there are some that wait.
    private func work(_ first: Request) {
        var next: Request? = first
        while let request = next {
            let result = Result { () throws(EarshotError) in try self.look(request.path) }
            next = self.state.withLock { $0.end(request.path) }
            request.answer.resume(returning: result)
        }
    }

    private static func opened(_ path: String) throws(EarshotError) -> Opened {
        guard !path.utf8.contains(0), FileStatus(path: path)?.kind == .directory else {
            let file = try SourceFile(path: path)
            return Opened(source: file, name: file.name, kind: .file, identity: file.identity)
        }
        let tree = try TreeSource(path: path)
        return Opened(source: tree, name: tree.name, kind: .directory, identity: tree.identity)
    }
}
