/// Metrics in Prometheus' text format, version 0.0.4: each metric with its help and type, then one line per sample.
struct PrometheusText: Sendable {
    /// The type of a metric.
    enum Kind: String, Sendable {
        /// A value that only rises; its name ends in `_total`.
        case counter
        case gauge
    }

    static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    private(set) var text = ""

    /// Adds a metric without labels.
    mutating func add(_ name: String, _ kind: Kind, _ help: String, _ value: some BinaryInteger) {
        self.describe(name, kind, help)
        self.text += "\(name) \(value)\n"
    }

    /// Adds a metric without labels whose value may be fractional.
    mutating func add(_ name: String, _ kind: Kind, _ help: String, seconds: Double) {
        self.describe(name, kind, help)
        self.text += "\(name) \(seconds)\n"
    }

    /// Adds a metric with a sample for each combination of labels; the caller's code defines the labels.
    mutating func add<Value: BinaryInteger>(
        _ name: String, _ kind: Kind, _ help: String, samples: [(labels: [(String, String)], value: Value)]
    ) {
        self.describe(name, kind, help)
        for sample in samples {
            let labels = sample.labels.map { "\($0.0)=\"\(Self.escaped($0.1))\"" }.joined(separator: ",")
            self.text += "\(name){\(labels)} \(sample.value)\n"
        }
    }

    private mutating func describe(_ name: String, _ kind: Kind, _ help: String) {
        self.text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n"
    }

    private static func escaped(_ value: String) -> String {
        value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
    }
}
