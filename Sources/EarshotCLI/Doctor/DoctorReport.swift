/// All findings, in the order in which they are printed.
struct DoctorReport: Codable, Hashable, Sendable {
    let checks: [Finding]
    /// The number of failed checks. The exit status is 0 only if this is 0.
    let failed: Int
    /// The number of warnings.
    let warnings: Int

    init(_ facts: DoctorFacts) {
        self.checks = Check.all.flatMap { $0.findings(facts) }
        self.failed = self.checks.count { $0.sign == .fail }
        self.warnings = self.checks.count { $0.sign == .warn }
    }

    /// The report's text: a line for each finding, and a line below it for the next step.
    func text(colour: Bool) -> String {
        let width = (self.checks.map(\.check.count).max() ?? 0) + 2
        return self.checks.map { finding in
            let sign = finding.sign.rawValue.padded(to: 6)
            let line = Self.coloured(sign, finding.sign, colour) + finding.check.padded(to: width) + finding.message + "\n"
            return line + (finding.next.map { String(repeating: " ", count: 6 + width) + "next: \($0)\n" } ?? "")
        }.joined()
    }

    /// The summary, such as `1 check failed, 2 warnings`.
    var summary: String {
        let failed = self.failed == 0 ? "nothing failed" : "\(Words.count(self.failed, "check")) failed"
        return self.warnings == 0 ? failed : "\(failed), \(Words.count(self.warnings, "warning"))"
    }

    private static func coloured(_ text: String, _ sign: Finding.Sign, _ colour: Bool) -> String {
        guard colour else { return text }
        let code =
            switch sign {
            case .ok: 32
            case .warn: 33
            case .fail: 31
            case .skip: 2
            }
        return "\u{1B}[\(code)m\(text)\u{1B}[0m"
    }
}

extension String {
    fileprivate func padded(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - self.count)) }
}
