extension HTMLPage {
    static func link(toSchema name: String) -> String { "<a href=\"#schema-\(Self.escaped(name))\">\(Self.escaped(name))</a>" }

    /// Returns a schema with its heading.
    static func schema(_ member: JSONNode.Member) -> String {
        let description = member.value["description"]?.string.map { "<p>\(Self.words($0))</p>" } ?? ""
        return """
            <section id="schema-\(Self.escaped(member.key))">
            <h3>\(Self.escaped(member.key))</h3>
            \(description)
            \(Self.isPlainObject(member.value) ? "" : "<div>\(Self.type(member.value))</div>")
            \(Self.properties(member.value))
            </section>
            """
    }

    /// Whether a schema consists only of its properties.
    private static func isPlainObject(_ schema: JSONNode) -> Bool {
        let known: Set = ["type", "properties", "required", "description", "title"]
        return schema["properties"] != nil && schema.members.allSatisfy { known.contains($0.key) }
    }

    /// Returns the table of an object's fields.
    private static func properties(_ schema: JSONNode) -> String {
        guard let properties = schema["properties"]?.members, !properties.isEmpty else { return "" }
        let required = schema["required"]?.elements.compactMap(\.string) ?? []
        return Self.table(
            ["Field", "Value", "Meaning"],
            properties.map { property in
                [
                    Self.code(property.key) + (required.contains(property.key) ? " <em>required</em>" : ""), Self.type(property.value),
                    Self.words(property.value["description"]?.string ?? ""),
                ]
            })
    }

    /// Returns the description of a schema's possible values. It contains every keyword of the schema: in words if there are words for it,
    /// and verbatim otherwise. Fields and descriptions are shown elsewhere.
    static func type(_ schema: JSONNode) -> String {
        if let reference = schema["$ref"]?.string { return Self.link(toSchema: String(reference.split(separator: "/").last ?? "")) }
        var parts: [String] = []
        for keyword in schema.members {
            switch (keyword.key, keyword.value) {
            case ("type", .string(let type)): parts.append(Self.escaped(type))
            case ("type", let types): parts.append(types.elements.compactMap(\.string).map(Self.escaped).joined(separator: " or "))
            case ("items", let items): parts.append("of \(Self.nested(items))")
            case ("additionalProperties", let values) where !values.members.isEmpty: parts.append("of names with \(Self.nested(values))")
            case ("oneOf", let choices), ("anyOf", let choices): parts.append(choices.elements.map(Self.nested).joined(separator: " or "))
            case ("allOf", let all): parts.append(all.elements.map(Self.nested).joined(separator: " and "))
            case ("enum", let values): parts.append(values.elements.map { Self.code($0.text) }.joined(separator: ", "))
            case ("x-extensible-enum", let values):
                parts.append(values.elements.map { Self.code($0.text) }.joined(separator: ", ") + ", or others in later versions")
            case ("const", let value): parts.append(Self.code(value.text))
            case ("properties", _), ("required", _), ("description", _), ("title", _): break
            default: parts.append("<small>\(Self.escaped(keyword.key)) \(Self.code(keyword.value.text))</small>")
            }
        }
        return parts.joined(separator: " ")
    }

    /// Returns a schema inside another one: its type, required fields, description and fields.
    private static func nested(_ schema: JSONNode) -> String {
        let description = schema["description"]?.string.map { " (\(Self.words($0)))" } ?? ""
        let required = schema["properties"] == nil ? schema["required"]?.elements.compactMap(\.string) ?? [] : []
        let with = required.isEmpty ? "" : "with \(required.map(Self.code).joined(separator: ", "))"
        return "\(Self.type(schema))\(with)\(description)\(Self.properties(schema))"
    }
}
