import EarshotClient
import EarshotSafety
import FoundationEssentials
import Glibc

/// Numbers and times as a person reads them.
enum Words {
    /// How much of an id tables show, in characters: enough to be unique, and accepted wherever an id is.
    static let idLength = 12

    /// The beginning of an id.
    static func short(_ id: String) -> String { String(id.prefix(Self.idLength)) }

    /// A peer's id as a person may give it: its beginning, or all of it where that is no more than an advertisement's word.
    static func typed(_ peer: ControlAPI.Peer) -> String {
        peer.proven || peer.sources.contains("store") || peer.sources.contains("configured") ? Self.short(peer.id) : peer.id
    }

    /// Local time, such as `2026-11-21 10:00:00`; `unknown` for none that can be told.
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

    /// A time as a person has given it, such as `1 s`, `1.5 s` and `5 min`.
    static func seconds(_ value: Double) -> String {
        guard let whole = Int(exactly: value) else { return "\(value) s" }
        return whole >= 60 && whole % 60 == 0 ? "\(whole / 60) min" : "\(whole) s"
    }

    /// How long something waits, such as ` up to 30 s` and ` up to 5 min`; empty where that cannot be told.
    static func wait(from begin: Date?, to end: Date?) -> String {
        guard let begin, let end, let seconds = Int(exactly: end.timeIntervalSince(begin).rounded(.up)), seconds > 0 else { return "" }
        return " up to \(Self.seconds(Double(seconds)))"
    }

    /// The command that accepts this machine's invitation on another one; `nil` if the daemon does not say who this machine is.
    static func accepting(_ client: ControlClient) async -> String? {
        guard let status = try? await client.status().value else { return nil }
        return Self.accepting(name: status.name, id: status.peerID)
    }

    /// A name that a shell would take apart gives way to the beginning of the id, which means a peer that has proven its key.
    static func accepting(name: String, id: String) -> String {
        let isPlain =
            !name.hasPrefix("-") && !name.isEmpty
            && name.allSatisfy { letter in
                letter.isASCII && (letter.isLetter || letter.isNumber || "-_.".contains(letter))
            }
        return "earshot accept \(isPlain ? name : Self.short(id).escapedForDisplay)"
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

    /// Seconds as `0:07`, `12:05` or `1:02:03`.
    static func clock(_ seconds: Double) -> String {
        guard seconds.isFinite, seconds < 360_000 else { return "-:--" }
        let whole = Int(max(0, seconds).rounded(.up))
        let pad = { (number: Int) in number < 10 ? "0\(number)" : "\(number)" }
        let (hours, minutes) = (whole / 3600, whole / 60 % 60)
        return hours > 0 ? "\(hours):\(pad(minutes)):\(pad(whole % 60))" : "\(minutes):\(pad(whole % 60))"
    }

    /// A part of a whole, such as `45%`; 100 only when all is there.
    static func percent(_ part: UInt64, of whole: UInt64) -> String {
        guard whole > 0 else { return "100%" }
        guard part < whole else { return "100%" }
        return "\(min(99, Int(Double(part) / Double(whole) * 100)))%"
    }

    /// `1 file`, `2 files`.
    static func count(_ number: Int, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }
}
