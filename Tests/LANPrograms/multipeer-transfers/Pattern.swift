import Foundation

/// Bytes that follow from a name: each side makes them by itself, and compares.
struct Pattern {
    /// Repeated; a prime, so that no part of a stream that is out of place looks right.
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

    /// What a reader says of bytes that came from the beginning on.
    func verdict(of data: Data) -> String {
        "\(data.count) \(data == self.bytes(from: 0, data.count) ? "bytes as sent" : "other bytes")"
    }
}
