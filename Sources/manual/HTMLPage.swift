/// api.html: the OpenAPI document as one page for a browser, which loads nothing: no scripts, no fonts, nothing from a network.
enum HTMLPage {
    static func text(_ api: APIDescription) -> String {
        let info = api.document["info"]
        let title = Self.escaped(info?["title"]?.string ?? "")
        return """
            <!DOCTYPE html>
            <html lang="en">
            <head>
            <meta charset="utf-8"/>
            <meta name="viewport" content="width=device-width, initial-scale=1"/>
            <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'"/>
            <title>\(title)</title>
            <style>
            \(Self.style)
            </style>
            </head>
            <body>
            <nav>
            \(Self.contents(api))
            </nav>
            <main>
            <h1>\(title) \(Self.escaped(info?["version"]?.string ?? ""))</h1>
            <p>\(Self.words(info?["summary"]?.string ?? ""))</p>
            \(Self.paragraphs(info?["description"]?.string))
            \(api.tags.map { Self.calls($0, api) }.joined(separator: "\n"))
            <h2 id="schemas">Schemas</h2>
            \(api.schemas.map(Self.schema).joined(separator: "\n"))
            </main>
            </body>
            </html>

            """
    }

    // MARK: - Text

    /// Escapes text for an element's content or a quoted attribute.
    static func escaped(_ text: String) -> String {
        var result = ""
        for character in text.unicodeScalars {
            switch character {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case "'": result += "&#39;"
            default: result.unicodeScalars.append(character)
            }
        }
        return result
    }

    /// Escapes a sentence, and turns text between backticks into code.
    static func words(_ text: String) -> String {
        text.split(separator: "`", omittingEmptySubsequences: false).enumerated().map { index, part in
            index % 2 == 0 ? Self.escaped(String(part)) : Self.code(String(part))
        }.joined()
    }

    static func code(_ text: String) -> String { "<code>\(Self.escaped(text))</code>" }

    private static func paragraphs(_ text: String?) -> String {
        (text ?? "").split(separator: "\n").map { "<p>\(Self.words(String($0)))</p>" }.joined(separator: "\n")
    }

    // MARK: - Calls

    private static func contents(_ api: APIDescription) -> String {
        let calls = api.tags.map { tag in
            "<li>\(Self.escaped(tag))<ul>\n"
                + api.operations(of: tag).map { operation in
                    "<li><a href=\"#\(Self.escaped(operation.id))\">\(Self.escaped("\(operation.method) \(operation.path)"))</a></li>"
                }.joined(separator: "\n") + "\n</ul></li>"
        }
        let schemas = api.schemas.map { "<li>\(Self.link(toSchema: $0.key))</li>" }.joined(separator: "\n")
        return (["<ul>"] + calls + ["<li><a href=\"#schemas\">schemas</a><ul>", schemas, "</ul></li>", "</ul>"]).joined(separator: "\n")
    }

    private static func calls(_ tag: String, _ api: APIDescription) -> String {
        "<h2>\(Self.escaped(tag))</h2>\n" + api.operations(of: tag).map { Self.call($0, api) }.joined(separator: "\n")
    }

    private static func call(_ operation: APIDescription.Operation, _ api: APIDescription) -> String {
        var parts = [
            "<section id=\"\(Self.escaped(operation.id))\">",
            "<h3><b>\(Self.escaped(operation.method))</b> \(Self.code(operation.path))</h3>",
            "<p>\(Self.words(operation.summary)).</p>",
            Self.paragraphs(operation.description),
        ]
        let parameters = (operation.node["parameters"]?.elements ?? []).map(api.resolved)
        if !parameters.isEmpty { parts.append(Self.table(["Parameter", "In", "Value", "Meaning"], parameters.map(Self.parameter))) }
        if let body = operation.node["requestBody"] {
            let need = body["required"] == .bool(true) ? "" : " (may be left out)"
            parts.append("<h4>Request\(need)</h4>\n\(Self.paragraphs(body["description"]?.string))\(Self.content(body))")
        }
        let answers = (operation.node["responses"]?.members ?? []).map { answer in
            let response = api.resolved(answer.value)
            let meaning = Self.words(response["description"]?.string ?? "") + Self.headers(response)
            return [Self.escaped(answer.key), meaning, Self.content(response)]
        }
        parts.append(Self.table(["Status", "Meaning", "Body"], answers))
        return parts.filter { !$0.isEmpty }.joined(separator: "\n") + "\n</section>"
    }

    private static func parameter(_ node: JSONNode) -> [String] {
        let name = Self.code(node["name"]?.string ?? "") + (node["required"] == .bool(true) ? " <em>required</em>" : "")
        let schema = node["schema"].map { Self.type($0) } ?? ""
        return [name, Self.escaped(node["in"]?.string ?? ""), schema, Self.words(node["description"]?.string ?? "")]
    }

    private static func headers(_ response: JSONNode) -> String {
        (response["headers"]?.members ?? []).map { header in
            "<br/>\(Self.code(header.key)): \(Self.words(header.value["description"]?.string ?? ""))"
        }.joined()
    }

    /// The schemas of a body by content type. In a body of lines, `x-item-schema` is the schema of a line.
    private static func content(_ node: JSONNode) -> String {
        (node["content"]?.members ?? []).map { media in
            let line = media.value["x-item-schema"].map { ", each line: \(Self.type($0))" } ?? ""
            let schema = media.value["schema"].map { ": \(Self.type($0))" } ?? ""
            let description = media.value["schema"]?["description"]?.string.map { ". \(Self.words($0))" } ?? ""
            return "<div>\(Self.code(media.key))\(schema)\(line)\(description)</div>"
        }.joined(separator: "\n")
    }

    static func table(_ head: [String], _ rows: [[String]]) -> String {
        let body = rows.map { row in "<tr>\(row.map { "<td>\($0)</td>" }.joined())</tr>" }.joined(separator: "\n")
        return "<table>\n<tr>\(head.map { "<th>\($0)</th>" }.joined())</tr>\n\(body)\n</table>"
    }

    private static let style = """
        :root { color-scheme: light dark; --line: #8884; --mark: #8882; }
        body { margin: 0; font: 15px/1.5 system-ui, sans-serif; display: flex; }
        nav { flex: 0 0 21rem; height: 100vh; overflow: auto; position: sticky; top: 0; font-size: 13px; }
        nav ul { list-style: none; padding-left: 1rem; } nav a { text-decoration: none; }
        main { padding: 0 2rem 4rem; min-width: 0; max-width: 70rem; }
        section { border-top: 1px solid var(--line); } h3 code { font-size: 1rem; }
        code { font: 13px/1.4 ui-monospace, monospace; background: var(--mark); padding: 0 .2em; overflow-wrap: anywhere; }
        table { border-collapse: collapse; width: 100%; margin: .5rem 0 1rem; }
        th, td { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line); }
        small { opacity: .8; }
        @media (max-width: 60rem) { body { display: block; } nav { position: static; height: auto; border: 0; } }
        """
}
