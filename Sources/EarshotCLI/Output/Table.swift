import EarshotSafety

/// Rows under a heading, fitted to the terminal's width. Every cell is escaped here, wherever it came from.
struct Table {
    /// A column's heading, and whether it gives way when the terminal is too narrow.
    struct Column {
        let title: String
        var isFlexible = false
    }

    /// Between two columns.
    static let gap = 2
    /// What a flexible column keeps, in columns of the terminal.
    static let flexibleMinimum = 8

    private let columns: [Column]
    let rows: [[String]]

    init(_ columns: [Column], rows: [[String]]) {
        self.columns = columns
        self.rows = rows.map { row in row.map(\.escapedForDisplay) }
    }

    /// The table as text, with a line's end after each row; `width` is the terminal's, `nil` where there is none.
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
        // The widest one that may give way does, column by column, until it fits or nothing more can.
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

    /// Writes the table to standard output, or tells that there is nothing to show.
    func show(empty: String) throws {
        guard !self.rows.isEmpty else { return Standard.note(empty) }
        try Standard.write(self.render(width: Terminal.width(), bold: Terminal.hasColour))
    }
}
