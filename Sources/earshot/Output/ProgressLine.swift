import EarshotSafety
import Glibc
import Synchronization

/// The one line on standard error that is drawn over while something moves; nothing at all where that is no terminal.
enum ProgressLine {
    private static let isDrawn = Mutex(false)

    /// Shows the line in place of the last one.
    static func draw(name: String, transferred: UInt64, size: UInt64, rate: UInt64) {
        guard Terminal.isError else { return }
        let width = Terminal.width(of: STDERR_FILENO) ?? 80
        let line = Self.text(name: name, transferred: transferred, size: size, rate: rate, width: width - 1)
        Self.isDrawn.withLock { drawn in
            drawn = true
            Self.put("\r\(line)\u{1B}[K")
        }
    }

    /// Ends the line, so that whatever follows begins at a fresh one.
    static func leave() {
        Self.isDrawn.withLock { drawn in
            if drawn { Self.put("\r\u{1B}[K") }
            drawn = false
        }
    }

    /// `name  45%  12.3 MB/s  0:12 left`, the name cut to fit.
    static func text(name: String, transferred: UInt64, size: UInt64, rate: UInt64, width: Int) -> String {
        var parts = [Words.percent(transferred, of: size)]
        if rate > 0 {
            parts.append("\(Words.size(rate))/s")
            if transferred < size { parts.append("\(Words.clock(Double(size - transferred) / Double(rate))) left") }
        }
        let rest = parts.map { "  " + $0 }.joined()
        return DisplayWidth.cut(name.escapedForDisplay, to: max(8, width - DisplayWidth.of(rest))) + rest
    }

    private static func put(_ text: String) {
        _ = Array(text.utf8).withUnsafeBytes { Standard.write($0, to: STDERR_FILENO) }
    }
}
