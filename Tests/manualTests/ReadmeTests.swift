import Foundation
import FoundationXML
import Testing

@testable import manual

/// The README, which a newcomer reads first.
@Suite struct ReadmeTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private static func read(_ path: String) throws -> String { try String(contentsOf: Self.root.appending(path: path), encoding: .utf8) }

    /// The picture in the README is small, loads nothing from elsewhere, and has a title.
    @Test func thePictureLoadsNothing() throws {
        let picture = try Self.read("Config/recording.svg")
        #expect(XMLParser(data: Data(picture.utf8)).parse())
        #expect(picture.utf8.count < 16_384)
        let elsewhere = picture.replacingOccurrences(of: "xmlns=\"http://www.w3.org/2000/svg\"", with: "")
        for word in ["http:", "https:", "href", "<script", "<image", "@import", "url("] { #expect(!elsewhere.contains(word)) }
        #expect(picture.contains("prefers-reduced-motion") && picture.contains("<title>"))
        #expect(try Self.read("README.md").contains("](Config/recording.svg)"))
    }

    /// The README takes five minutes to read. Longer text belongs in an article.
    @Test func theReadmeIsShort() throws {
        #expect(try Self.read("README.md").split(separator: "\n", omittingEmptySubsequences: false).count <= 151)
    }

    /// Every file and manual page that the README names exists.
    @Test func whatTheReadmeNamesIsThere() throws {
        let readme = try Self.read("README.md")
        for match in readme.matches(of: /\]\(([^)]+)\)/) {
            #expect(FileManager.default.fileExists(atPath: Self.root.appending(path: String(match.1)).path), "\(match.1)")
        }
        for match in readme.matches(of: /`man ([a-z.-]+)`/) {
            #expect(Page.allCases.contains { $0.rawValue.dropLast(2) == match.1 }, "\(match.1)")
        }
    }
}
