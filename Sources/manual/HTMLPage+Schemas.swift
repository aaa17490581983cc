extension HTMLPage {
    static func link(toSchema name: String) -> String { "<a href=\"#schema-\(Self.escaped(name))\">\(Self.escaped(name))</a>" }

    /// A schema with its heading.
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

    /// The fields of an object.
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

    /// What a value may be. Every keyword of the schema shows, in words where there are some for it and as it stands otherwise, but for
    /// fields and descriptions, which have places of their own.
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

    /// A schema within another one, with what it has beyond a type.
    private static func nested(_ schema: JSONNode) -> String {
        let description = schema["description"]?.string.map { " (\(Self.words($0)))" } ?? ""
        let required = schema["properties"] == nil ? schema["required"]?.elements.compactMap(\.string) ?? [] : []
        let with = required.isEmpty ? "" : "with \(required.map(Self.code).joined(separator: ", "))"
        return "\(Self.type(schema))\(with)\(description)\(Self.properties(schema))"
    }
}
