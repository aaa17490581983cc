import EarshotClient
import EarshotSafety
import Glibc
import Synchronization

/// The progress line on standard error, redrawn in place; does nothing if standard error is not a terminal.
enum ProgressLine {
    private static let isDrawn = Mutex(false)

    /// Draws the line in place of the last one. Unless `left` is given, the time left follows from the current rate.
    static func draw(name: String, transferred: UInt64, size: UInt64, rate: UInt64, left: UInt64? = nil) {
        guard Terminal.isError else { return }
        let width = Terminal.width(of: STDERR_FILENO) ?? 80
        let line = Self.text(name: name, transferred: transferred, size: size, rate: rate, left: left, width: width - 1)
        Self.isDrawn.withLock { drawn in
            drawn = true
            Self.put("\r\(line)\u{1B}[K")
        }
    }

    /// Draws several transfers as one: the sums of their bytes and rates, and the longest time left.
    static func draw(name: String, _ resources: [ControlAPI.Resource]) {
        let total = resources.reduce(into: (transferred: UInt64(0), size: UInt64(0), rate: UInt64(0))) { sum, row in
            sum.transferred = sum.transferred.addingClamped(row.transferred)
            sum.size = sum.size.addingClamped(row.size)
            sum.rate = sum.rate.addingClamped(row.bytesPerSecond)
        }
        Self.draw(
            name: name, transferred: total.transferred, size: total.size, rate: total.rate, left: resources.compactMap(\.secondsLeft).max())
    }

    /// Erases the line, so that the next output starts at the beginning of the line.
    static func leave() {
        Self.isDrawn.withLock { drawn in
            if drawn { Self.put("\r\u{1B}[K") }
            drawn = false
        }
    }

    /// `name  45%  12.3 MB/s  0:12 left`, the name cut to fit.
    static func text(name: String, transferred: UInt64, size: UInt64, rate: UInt64, left: UInt64? = nil, width: Int) -> String {
        var parts = [Words.percent(transferred, of: size)]
        if rate > 0 {
            parts.append("\(Words.size(rate))/s")
            if transferred < size {
                let seconds = left.map { Double($0) } ?? Double(size - transferred) / Double(rate)
                parts.append("\(Words.clock(seconds)) left")
            }
        }
        let rest = parts.map { "  " + $0 }.joined()
        return DisplayWidth.cut(name.escapedForDisplay, to: max(8, width - DisplayWidth.of(rest))) + rest
    }

    private static func put(_ text: String) {
        _ = Array(text.utf8).withUnsafeBytes { Standard.write($0, to: STDERR_FILENO) }
    }
}

extension UInt64 {
    fileprivate func addingClamped(_ other: UInt64) -> UInt64 {
        let (sum, overflow) = self.addingReportingOverflow(other)
        return overflow ? .max : sum
    }
}
