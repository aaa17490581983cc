import Foundation

/// Bytes that are derived from a name. Each side generates them independently and compares.
struct Pattern {
    /// The length after which the bytes repeat: a prime, so that a misplaced part of a stream does not look right.
    private static let period = 65_521
    private let block: Data

    init(_ name: String) {
        let seed = name.utf8.reduce(0) { $0 &* 31 &+ Int($1) }
        self.block = Data((0..<Self.period).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8 &+ seed) })
    }

    func bytes(from offset: Int, _ count: Int) -> Data {
        var data = Data()
        while data.count < count {
            let start = (offset + data.count) % Self.period
            data.append(self.block[start..<min(start + count - data.count, Self.period)])
        }
        return data
    }

    /// Returns a reader's verdict on bytes that were received from the beginning of the stream.
    func verdict(of data: Data) -> String {
        "\(data.count) \(data == self.bytes(from: 0, data.count) ? "bytes as sent" : "other bytes")"
    }
}
