package import FoundationEssentials

/// What is a JSON text at all.
package enum JSONText {
    /// The decoder would guess at other encodings, and read around bytes that are none (RFC 8259 section 8.1).
    package static func check(_ data: Data) throws(JSONProblem) {
        guard !data.prefix(4).contains(0), String(validating: data, as: UTF8.self) != nil else {
            throw JSONProblem(description: "not a JSON document in UTF-8")
        }
    }
}
