import Foundation
import Testing

/// The list of threats with their tests, in `threats.txt`. A row without a test, or a test that no longer exists, fails.
@Suite struct ThreatTableTests {
    private static let place = (#filePath as NSString).deletingLastPathComponent

    @Test func everyRowHasItsTests() throws {
        let lines = try String(contentsOfFile: "\(Self.place)/threats.txt", encoding: .utf8).split(separator: "\n")
        var rows: [String: Int] = [:]
        var row = ""
        let tests = (Self.place as NSString).deletingLastPathComponent
        let files = try #require(FileManager.default.enumerator(atPath: tests)).compactMap { $0 as? String }
        for line in lines where !line.hasPrefix("#") {
            guard line.hasPrefix("    ") else {
                row = String(line)
                rows[row] = 0
                continue
            }
            let parts = line.dropFirst(4).split(separator: ".")
            try #require(parts.count == 2, "\(line)")
            // Two targets may each have a file with that name.
            let sources = try files.filter { ($0 as NSString).lastPathComponent == "\(parts[0]).swift" }.map {
                try String(contentsOfFile: "\(tests)/\($0)", encoding: .utf8)
            }
            let isThere = sources.contains { $0.contains("func \(parts[1])(") }
            #expect(isThere, "\(line): no such test")
            rows[row, default: 0] += 1
        }
        #expect(rows.count >= 23)
        #expect(rows.values.allSatisfy { $0 > 0 }, "\(rows)")
    }
}
