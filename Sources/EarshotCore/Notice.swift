/// A log line, for administrators.
package struct Notice: Sendable, Hashable {
    package enum Level: Sendable, Hashable {
        case debug, info, notice, warning, error
    }

    /// A named value of the line.
    package struct Detail: Sendable, Hashable {
        package let name: String
        package let value: String
    }

    package let level: Level
    package let text: String
    package let details: [Detail]

    init(_ level: Level, _ text: String, _ details: KeyValuePairs<String, any CustomStringConvertible> = [:]) {
        self.level = level
        self.text = text
        self.details = details.map { Detail(name: $0.key, value: $0.value.description) }
    }
}
