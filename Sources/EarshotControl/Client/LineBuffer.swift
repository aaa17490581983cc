/// Collects bytes and gives them back line by line, never keeping more than the limit without a line's end.
struct LineBuffer {
    /// A line is longer than the limit.
    struct LineTooLong: Error {}

    private let limit: Int
    private var bytes: [UInt8] = []
    /// Where the line that is being collected begins, and how far it was already searched for its end.
    private var start = 0
    private var searched = 0

    init(limit: Int) {
        self.limit = limit
    }

    mutating func append(_ piece: some Collection<UInt8>) {
        if self.start > 0 {
            self.bytes.removeFirst(self.start)
            self.searched -= self.start
            self.start = 0
        }
        self.bytes.append(contentsOf: piece)
    }

    /// The next whole line without its end; `nil` when there is none yet.
    mutating func next() throws(LineTooLong) -> [UInt8]? {
        guard let end = self.bytes[self.searched...].firstIndex(of: UInt8(ascii: "\n")) else {
            self.searched = self.bytes.count
            guard self.bytes.count - self.start <= self.limit else { throw LineTooLong() }
            return nil
        }
        guard end - self.start <= self.limit else { throw LineTooLong() }
        var line = self.bytes[self.start..<end]
        if line.last == UInt8(ascii: "\r") { line.removeLast() }
        self.start = end + 1
        self.searched = self.start
        return Array(line)
    }
}
