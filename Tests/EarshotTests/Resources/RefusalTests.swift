import EarshotCore
import EarshotSafety
import EarshotTree
import EarshotWire
import Foundation
import Glibc
import Testing

@testable import Earshot

/// The failure message for the other side: it contains neither a path of this machine nor the kernel's error.
@Suite struct RefusalTests {
    private static let path = "/home/ann/secret/report.pdf"

    private static let underlying: [(any Error)?] = [
        nil, FileError("open", Self.path, code: EACCES), FileError("write to", Self.path, code: ENOSPC),
        TreeError.unreadable(FileError("read", Self.path, code: EIO)), TreeError.file(FileError("make", Self.path, code: EDQUOT)),
        TreeError.sourceChanged(path: Self.path), TreeError.unsupported(path: Self.path, what: "a named pipe"),
    ]

    private static func isSilent(_ refusal: Refusal) -> Bool {
        !refusal.explanation.contains("/") && !refusal.explanation.isEmpty
            && [EACCES, ENOSPC, EIO, EDQUOT].allSatisfy { !refusal.explanation.contains(FileError.reason($0)) }
    }

    @Test(arguments: [EarshotError.Code.invalidSource, .sourceChanged, .storage, .noSpace]) func codesOfFiles(code: EarshotError.Code) {
        for underlying in Self.underlying {
            // A limit of this daemon, whose message contains no path, is passed on unchanged.
            if underlying == nil, code == .noSpace { continue }
            let error = EarshotError(code, "cannot open \(Self.path): permission denied", underlying: underlying)
            let refusal = Refusal(error)
            #expect(Self.isSilent(refusal), "\(code), \(String(describing: underlying)): \(refusal.explanation)")
        }
        // As for a later connection, with a row from an earlier run.
        #expect(Self.isSilent(Refusal(toPeer: EarshotError(code, "cannot open \(Self.path): permission denied"))))
    }

    /// A source that is no longer a file when its transfer is resumed.
    @Test func sourcesThatCannotBeOpened() async throws {
        let place = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-refusal-\(UUID())").path
        try FileManager.default.createDirectory(atPath: "\(place)/directory", withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: place) }
        try #require(mkfifo("\(place)/fifo", 0o600) == 0)
        try #require(mkfifo("\(place)/directory/fifo", 0o600) == 0)
        try #require(symlink("nowhere", "\(place)/dangling") == 0)
        for path in ["\(place)/fifo", "\(place)/directory", "\(place)/dangling", "\(place)/none", "/proc/version", "\(place)/fifo/x"] {
            let error = await #expect(throws: EarshotError.self) { _ = try await SourceOpening.open(.path(path)) }
            guard let error else { continue }
            let refusal = Refusal(error)
            #expect(Self.isSilent(refusal), "\(path): \(refusal.explanation)")
        }
    }
}
