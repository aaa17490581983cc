import EarshotSafety

/// Rows under a heading, fitted to the terminal's width. The table escapes every cell, whatever its source.
struct Table {
    /// A column's heading, and whether the column shrinks if the terminal is too narrow.
    struct Column {
        let title: String
        var isFlexible = false
    }

    /// The space between two columns.
    static let gap = 2
    /// The smallest width of a flexible column, in columns of the terminal.
    static let flexibleMinimum = 8

    private let columns: [Column]
    let rows: [[String]]

    init(_ columns: [Column], rows: [[String]]) {
        self.columns = columns
        self.rows = rows.map { row in row.map(\.escapedForDisplay) }
    }

    /// The table as text, with a newline after each row; `width` is the terminal's width, or `nil` without a terminal.
    func render(width: Int?, bold: Bool) -> String {
        let widths = self.widths(fitting: width)
        let heading = Self.line(self.columns.map(\.title), widths)
        let lines = [bold ? "\u{1B}[1m\(heading)\u{1B}[0m" : heading] + self.rows.map { Self.line($0, widths) }
        return lines.map { $0 + "\n" }.joined()
    }

    private func widths(fitting width: Int?) -> [Int] {
        var widths = self.columns.indices.map { index in
            ([self.columns[index].title] + self.rows.map { $0[index] }).map(DisplayWidth.of).max() ?? 0
        }
        guard let width else { return widths }
        // Shrinks the widest flexible column, step by step, until the table fits or no column can shrink.
        while widths.reduce(0, +) + Self.gap * (widths.count - 1) > width {
            let candidates = widths.indices.filter { self.columns[$0].isFlexible && widths[$0] > Self.flexibleMinimum }
            guard let widest = candidates.max(by: { widths[$0] < widths[$1] }) else { break }
            widths[widest] -= 1
        }
        return widths
    }

    private static func line(_ cells: [String], _ widths: [Int]) -> String {
        var line = ""
        for (index, cell) in cells.enumerated() {
            let text = DisplayWidth.cut(cell, to: widths[index])
            line += text
            guard index < cells.count - 1 else { break }
            line += String(repeating: " ", count: widths[index] - DisplayWidth.of(text) + Self.gap)
        }
        while line.hasSuffix(" ") { line.removeLast() }
        return line
    }

    /// Writes the table to standard output; if it has no rows, reports `empty` instead.
    func show(empty: String) throws {
        guard !self.rows.isEmpty else { return Standard.note(empty) }
        try Standard.write(self.render(width: Terminal.width(), bold: Terminal.hasColour))
    }
}
