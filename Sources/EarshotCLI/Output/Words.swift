import EarshotClient
import EarshotSafety
import FoundationEssentials
import Glibc

/// Numbers and times in a readable form.
enum Words {
    /// The length of ids in tables, in characters: enough to be unique, and accepted wherever an id is.
    static let idLength = 12
    /// The shortest accepted beginning of an id that another peer may have chosen, in characters: four can spell words.
    static let chosenIDPrefixMinimum = 8

    /// The beginning of an id.
    static func short(_ id: some CustomStringConvertible) -> String { String(id.description.prefix(Self.idLength)) }

    /// The form of a peer's id that commands accept: its beginning, or the whole id if the id is only advertised.
    static func typed(_ peer: ControlAPI.Peer) -> String {
        peer.proven || peer.sources.contains("store") || peer.sources.contains("configured") ? Self.short(peer.id) : peer.id.description
    }

    /// Local time, such as `2026-11-21 10:00:00`; `unknown` for a time that cannot be shown.
    static func time(_ date: Date?) -> String {
        guard let seconds = date?.timeIntervalSince1970.rounded(.down), var clock = time_t(exactly: seconds) else { return "unknown" }
        var parts = tm()
        guard localtime_r(&clock, &parts) != nil else { return "unknown" }
        var buffer = [CChar](repeating: 0, count: 64)
        let count = strftime(&buffer, buffer.count, "%Y-%m-%d %H:%M:%S", &parts)
        return String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// A round trip, such as `0.42 ms`.
    static func milliseconds(_ value: Double) -> String {
        guard value.isFinite, value >= 0 else { return "unknown time" }
        let hundredths = (value * 100).rounded()
        guard let whole = UInt64(exactly: hundredths) else { return "unknown time" }
        return "\(whole / 100).\(whole % 100 < 10 ? "0" : "")\(whole % 100) ms"
    }

    /// A duration as the user gave it, such as `1 s`, `1.5 s` and `5 min`.
    static func seconds(_ value: Double) -> String {
        guard let whole = Int(exactly: value) else { return "\(value) s" }
        return whole >= 60 && whole % 60 == 0 ? "\(whole / 60) min" : "\(whole) s"
    }

    /// The length of a wait, such as ` up to 30 s` and ` up to 5 min`; empty if it is unknown.
    static func wait(from begin: Date?, to end: Date?) -> String {
        guard let begin, let end, let seconds = Int(exactly: end.timeIntervalSince(begin).rounded(.up)), seconds > 0 else { return "" }
        return " up to \(Self.seconds(Double(seconds)))"
    }

    /// The command that accepts this machine's invitation on another machine; `nil` if the daemon does not report this machine's identity.
    static func accepting(_ client: ControlClient) async -> String? {
        guard let status = try? await client.status().value else { return nil }
        return Self.accepting(name: status.name, id: status.peerID)
    }

    /// The command that accepts an invitation. A name that a shell would split is replaced with the beginning of the id, which names a peer
    /// with a proven key.
    static func accepting(name: String, id: PeerID) -> String {
        let isPlain =
            !name.hasPrefix("-") && !name.isEmpty
            && name.allSatisfy { letter in
                letter.isASCII && (letter.isLetter || letter.isNumber || "-_.".contains(letter))
            }
        return "earshot accept \(isPlain ? name : Self.short(id))"
    }

    /// Bytes in decimal units, such as `812 B` and `12.3 MB`.
    static func size(_ bytes: UInt64) -> String {
        let units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"]
        guard bytes >= 1000 else { return "\(bytes) B" }
        var tenths = Double(bytes) * 10
        var unit = 0
        while tenths.rounded() >= 10_000, unit < units.count - 1 {
            tenths /= 1000
            unit += 1
        }
        let rounded = UInt64(tenths.rounded())
        return "\(rounded / 10).\(rounded % 10) \(units[unit])"
    }

    /// The number of offered files that one line names.
    private static let namedFiles = 3

    /// The files of an offer, such as `2 files, 3.1 MB: a.jpg (2.1 MB), b.jpg (1.0 MB)`; not escaped. The longest lists are shortened.
    static func offer(_ files: [ControlAPI.OfferedFile]) -> String {
        let names = files.prefix(Self.namedFiles).map { "\($0.name) (\(Self.size($0.size)))" }.joined(separator: ", ")
        guard files.count > 1 else { return names.isEmpty ? "no files" : names }
        let total = files.reduce(0 as UInt64) { sum, file in
            let (total, overflow) = sum.addingReportingOverflow(file.size)
            return overflow ? .max : total
        }
        let more = files.count > Self.namedFiles ? ", and \(files.count - Self.namedFiles) more" : ""
        return "\(Self.count(files.count, "file")), \(Self.size(total)): \(names)\(more)"
    }

    /// The state of LocalSend, such as `TCP 53317`; `nil` while it is off. Not escaped.
    static func localSend(_ state: ControlAPI.LocalSend) -> String? {
        guard state.enabled else { return nil }
        guard let port = state.port else { return "does not run" + (state.error.map { ": \($0)" } ?? "") }
        let wanted = state.wantedPort.flatMap { $0 == 0 || $0 == port ? nil : ", because \($0) was in use" } ?? ""
        return "TCP \(port)\(wanted)" + (state.error.map { ": \($0)" } ?? "")
    }

    /// Seconds as `0:07`, `12:05` or `1:02:03`.
    static func clock(_ seconds: Double) -> String {
        guard seconds.isFinite, seconds < 360_000 else { return "-:--" }
        let whole = Int(max(0, seconds).rounded(.up))
        let pad = { (number: Int) in number < 10 ? "0\(number)" : "\(number)" }
        let (hours, minutes) = (whole / 3600, whole / 60 % 60)
        return hours > 0 ? "\(hours):\(pad(minutes)):\(pad(whole % 60))" : "\(minutes):\(pad(whole % 60))"
    }

    /// A part of a whole, such as `45%`; 100 only if the whole is complete.
    static func percent(_ part: UInt64, of whole: UInt64) -> String {
        guard whole > 0 else { return "100%" }
        guard part < whole else { return "100%" }
        return "\(min(99, Int(Double(part) / Double(whole) * 100)))%"
    }

    /// `a`, `a and b`, or `a, b and c`.
    static func list(_ words: [String]) -> String {
        guard let last = words.last, words.count > 1 else { return words.first ?? "" }
        return "\(words.dropLast().joined(separator: ", ")) and \(last)"
    }

    /// `1 file`, `2 files`.
    static func count(_ number: Int, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }
}

extension Array {
    /// Returns the element with that id, or the only one whose id begins with the text. `noun` names an element, `line` shows it to a user who
    /// has to choose, and the command `list` lists all.
    func named<Kind>(
        _ text: String, by id: (Element) -> WireID<Kind>, _ noun: String, list: String, line: (Element) -> String
    ) throws(CommandFailure) -> Element {
        let lowercased = text.lowercased()
        let matches = self.filter { id($0).isNamed(lowercased, atLeast: Words.chosenIDPrefixMinimum) }
        guard let match = matches.first(where: { id($0).description == lowercased }) ?? matches.first else {
            throw CommandFailure(.data, "no such \(noun): \(text.escapedForDisplay)", hint: "list the \(noun)s: \(list)")
        }
        guard id(match).description == lowercased || matches.count == 1 else {
            throw CommandFailure(
                .data, "\(text.escapedForDisplay) matches several \(noun)s",
                hint: (["give more of the id:"] + matches.map { "  \(line($0))" }).joined(separator: "\n"))
        }
        return match
    }
}

extension WireID {
    /// Whether a text in lower case is this id, or at least `count` of its first characters.
    func isNamed(_ text: String, atLeast count: Int) -> Bool {
        let id = self.description
        return id == text || (text.count >= count && id.hasPrefix(text))
    }
}
