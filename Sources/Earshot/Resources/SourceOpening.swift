internal import EarshotSafety

/// Opens what is to be sent, on a thread of its own: walking a large directory takes a while, and any path may wait for a disk.
actor SourceOpening {
    private nonisolated let executor: ThreadExecutor

    /// The thread.
    nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    private static let shared: SourceOpening? = try? SourceOpening()

    private init() throws(EarshotError) {
        self.executor = try ThreadExecutor(name: "earshot-walk")
    }

    /// What a path leads to, opened to be sent.
    struct Opened: Sendable {
        let source: any ResourceSource
        let name: String
        let kind: Resource.Kind
    }

    /// Opens a file or a directory.
    /// - Throws: `invalid-source` for what is neither or cannot be read; `name-rejected`; as `TreeSource`.
    static func open(_ path: String) async throws(EarshotError) -> Opened {
        guard let shared = Self.shared else { throw EarshotError(.unavailable, "cannot start a thread to read \(path.escapedForDisplay)") }
        return try await shared.open(path)
    }

    private func open(_ path: String) throws(EarshotError) -> Opened {
        guard !path.utf8.contains(0), FileStatus(path: path)?.kind == .directory else {
            let file = try SourceFile(path: path)
            return Opened(source: file, name: file.name, kind: .file)
        }
        let tree = try TreeSource(path: path)
        return Opened(source: tree, name: tree.name, kind: .directory)
    }
}
