/// earshot-api(7): its article, with the calls as the OpenAPI document has them.
enum APIPage {
    static func write(_ api: APIDescription, _ article: Article, to page: inout Mdoc) {
        for section in article.sections {
            page.section(section) { name in name == "calls" ? Self.calls(api) : nil }
        }
    }

    /// Each call with what it does, by what it is about.
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
