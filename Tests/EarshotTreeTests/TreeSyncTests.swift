import EarshotSafety
import Foundation
import Glibc
import Testing

@testable import EarshotTree

/// Bringing a tree to disk where that has to be done entry by entry.
@Suite struct TreeSyncTests {
    private let scratch: TreeScratch
    private let manifest: TreeManifest

    init() throws {
        let scratch = try TreeScratch()
        try scratch.make("tree/empty")
        try scratch.make("tree/sub/deeper")
        try scratch.put("tree/first", "first")
        try scratch.put("tree/sub/deeper/last", "last")
        scratch.link("tree/sub/link", to: "../first")
        self.manifest = try TreeScanner.scan(scratch.directory("tree")).manifest
        self.scratch = scratch
    }

    /// Each of them is looked for: where it is missing, that shows.
    @Test(arguments: ["first", "sub/deeper/last", "empty"]) func everyFileAndDirectoryIsSaved(_ name: String) throws {
        let directory = try self.scratch.directory("tree")
        try TreeSync.syncEach(of: self.manifest, in: directory)
        try FileManager.default.removeItem(atPath: "\(self.scratch.path)/tree/\(name)")
        let error = #expect(throws: TreeError.self) { try TreeSync.syncEach(of: self.manifest, in: directory) }
        #expect(error?.description.contains("tree/\(name)") == true, "\(error?.description ?? "")")
    }

    /// They are in their directories; what a planted one leads to is not opened.
    @Test func linksAreNotFollowed() throws {
        let directory = try self.scratch.directory("tree")
        try FileManager.default.removeItem(atPath: "\(self.scratch.path)/tree/sub/link")
        try TreeSync.syncEach(of: self.manifest, in: directory)
        try FileManager.default.removeItem(atPath: "\(self.scratch.path)/tree/first")
        self.scratch.link("tree/first", to: "sub/deeper/last")
        #expect(throws: TreeError.self) { try TreeSync.syncEach(of: self.manifest, in: directory) }
    }
}
