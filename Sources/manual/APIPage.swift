/// earshot-api(7): the article, with the calls of the OpenAPI document.
enum APIPage {
    static func write(_ api: APIDescription, _ article: Article, to page: inout Mdoc) {
        for section in article.sections {
            page.section(section) { name in name == "calls" ? Self.calls(api) : nil }
        }
    }

    /// The calls with their descriptions, grouped by tag.
    private static func calls(_ api: APIDescription) -> String {
        var list = Mdoc()
        for tag in api.tags {
            list.raw(".Ss \(tag.prefix(1).uppercased())\(tag.dropFirst())\n.Bl -tag -width Ds")
            for operation in api.operations(of: tag) {
                list.raw(".It Cm \(operation.method) Pa \(Mdoc.word(operation.path, isTyped: true))")
                list.prose("\(operation.summary).")
                operation.description.map { list.text($0) }
            }
            list.raw(".El")
        }
        return String(list.text.dropLast())
    }
}
