import EarshotSafety
import Foundation
import Testing

/// The second line of defence alone: a confined thread uses a peer's names without the checks of the first one.
@Suite(.enabled(if: Confinement.isAvailable, "skipped: this kernel has no Landlock")) struct ConfinementTests {
    /// Runs on a thread of its own, because a thread stays confined permanently.
    private func confined<Value: Sendable>(
        to places: [Confinement.Place], _ work: @escaping @Sendable () -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(
                    with: Result {
                        try Confinement.confineThread(to: places)
                        return work()
                    })
            }
        }
    }

    /// Appends the peer's string to a directory after a slash, as no code of ours does. Returns the errno, or 0 if it worked.
    private static func write(_ name: String, below directory: String) -> CInt {
        let descriptor = open("\(directory)/\(name)", O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        guard descriptor >= 0 else { return errno }
        defer { close(descriptor) }
        return Glibc.write(descriptor, "x", 1) == 1 ? 0 : errno
    }

    @Test func namesThatClimbReachNothing() async throws {
        let (inside, outside) = (try Scratch(), try Scratch())
        try outside.put("precious", "before")
        try inside.link("away", to: outside.path)
        try inside.link("planted", to: "\(outside.path)/precious")
        let names = [
            "../\((outside.path as NSString).lastPathComponent)/new", "away/new", "away/precious", "planted",
            String(repeating: "../", count: 20) + outside.path.dropFirst() + "/precious",
        ]
        let place = inside.path
        let results = try await self.confined(to: [.changes(SafeDirectory(path: place))]) {
            names.map { Self.write($0, below: place) } + [Self.write("fine", below: place)]
        }
        #expect(results == names.map { _ in EACCES } + [0])
        #expect(try outside.names() == ["precious"])
        #expect(try outside.text("precious") == "before")
        #expect(try inside.text("fine") == "x")
        // The test's own threads are as free as before, and the names do lead out.
        #expect(Self.write("away/new", below: place) == 0)
    }

    @Test func nothingIsMadeMovedOrRemovedElsewhere() async throws {
        let (inside, outside) = (try Scratch(), try Scratch())
        try outside.put("precious", "before")
        try inside.put("own", "x")
        let (place, other) = (inside.path, outside.path)
        let results = try await self.confined(to: [.changes(SafeDirectory(path: place))]) {
            [
                mkdir("\(other)/d", 0o700), symlink("x", "\(other)/l"), mkfifo("\(other)/f", 0o600), unlink("\(other)/precious"),
                rename("\(place)/own", "\(other)/own"), link("\(place)/own", "\(other)/own"),
                rename("\(other)/precious", "\(place)/stolen"), truncate("\(other)/precious", 0),
            ]
        }
        #expect(results.allSatisfy { $0 == -1 })
        #expect(try outside.names() == ["precious"])
        #expect(try outside.text("precious") == "before")
        #expect(try inside.names() == ["own"])
    }

    @Test func readingStaysFreeAndSocketsHaveTheirPlace() async throws {
        let (sockets, outside) = (try Scratch(), try Scratch())
        try outside.put("readable", "yes")
        try sockets.put("old", "x")
        let (place, other) = (sockets.path, outside.path)
        let (text, results) = try await self.confined(to: [.sockets(SafeDirectory(path: place))]) {
            let descriptor = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0)
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array("\(place)/s".utf8)) }
            let bound = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
            }
            close(descriptor)
            let text = try? String(contentsOfFile: "\(other)/readable", encoding: .utf8)
            return (text, [bound, unlink("\(place)/old"), mkdir("\(place)/d", 0o700), open("/dev/null", O_WRONLY) < 0 ? -1 : 0])
        }
        #expect(text == "yes")
        #expect(results == [0, 0, -1, 0])
        #expect(Self.write("f", below: place) == 0, "and only the confined thread is held to it")
    }

    /// The daemon calls `reaching` to put a file into a directory that a user chose after the start. Only a confined process needs a thread
    /// of its own for that.
    @Test func withoutAConfinedProcessNothingChanges() throws {
        let scratch = try Scratch()
        let directory = try SafeDirectory(path: scratch.path)
        let place = scratch.path
        #expect(try Confinement.reaching([directory]) { Self.write("a", below: place) } == 0)
        #expect(throws: CocoaError.self) { try Confinement.reaching([directory]) { throw CocoaError(.fileNoSuchFile) } }
    }
}
