import Foundation
import FoundationXML
import Testing

@testable import manual

/// The API's pages, held to its document, and the articles, as pages.
@Suite struct DocumentationTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private static func read(_ path: String) throws -> String { try String(contentsOf: Self.root.appending(path: path), encoding: .utf8) }

    private static func document() throws -> String { try Self.read("Sources/earshotd/OpenAPI/openapi.json") }

    private static func article(_ page: Page) throws -> String { try Self.read("Sources/manual/Articles/\(page.rawValue.dropLast(2)).md") }

    private static func browserPage() throws -> String {
        try Page.browser.text(input: Array(Self.document().utf8), version: "1", date: "d")
    }

    /// The document's calls and schemas, by another reader of JSON than the pages'.
    private static func contents() throws -> (calls: [(method: String, path: String, id: String)], schemas: [String]) {
        let all = try #require(try JSONSerialization.jsonObject(with: Data(Self.document().utf8)) as? [String: Any])
        let paths = try #require(all["paths"] as? [String: [String: [String: Any]]])
        let calls = paths.flatMap { path in path.value.map { ($0.key.uppercased(), path.key, $0.value["operationId"] as? String ?? "") } }
        let schemas = try #require((all["components"] as? [String: Any])?["schemas"] as? [String: Any])
        return (calls, schemas.keys.sorted())
    }

    @Test func everyCallAndSchemaIsThere() throws {
        let (calls, schemas) = try Self.contents()
        #expect(calls.count > 30 && schemas.count > 30)
        let browser = try Self.browserPage()
        let api = try Page.api.text(
            input: Array(Self.document().utf8), article: Self.article(.api), version: "1", date: "d")
        let headings =
            calls.map { "<section id=\"\($0.id)\">\n<h3><b>\($0.method)</b> <code>\($0.path)</code></h3>" }
            + schemas.map { "<section id=\"schema-\($0)\">\n<h3>\($0)</h3>" }
        #expect(headings.filter { !browser.contains($0) } == [])
        let items = calls.map { "\n.It Cm \($0.method) Pa \(Mdoc.word($0.path, isTyped: true))\n" }
        #expect(items.filter { !api.contains($0) } == [])
    }

    @Test func everyDescriptionIsThere() throws {
        let browser = try Self.browserPage()
        var missing: [String] = []
        func look(_ node: JSONNode) {
            for member in node.members {
                if ["description", "summary"].contains(member.key), let text = member.value.string {
                    missing += text.split(separator: "\n").map { HTMLPage.words(String($0)) }.filter { !browser.contains($0) }
                }
                look(member.value)
            }
            for element in node.elements { look(element) }
        }
        let document = try JSONNode(Array(Self.document().utf8))
        // Servers and tags are said in the page's own words.
        for key in ["info", "paths", "components"] { look(try #require(document[key])) }
        #expect(missing.isEmpty)
    }

    @Test func theBrowserLoadsNothing() throws {
        final class Elements: NSObject, XMLParserDelegate {
            var found: [(name: String, attributes: [String: String])] = []
            func parser(
                _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?,
                attributes: [String: String]
            ) {
                self.found.append((name, attributes))
            }
        }
        let page = try Self.browserPage()
        let elements = Elements()
        let parser = XMLParser(data: Data(page.utf8))
        parser.delegate = elements
        #expect(parser.parse(), "\(parser.parserError as (any Error)?)")
        #expect(elements.found.count > 500)
        #expect(elements.found.allSatisfy { !["script", "link", "img", "iframe", "object", "embed", "base", "form"].contains($0.name) })
        let ids = elements.found.compactMap { $0.attributes["id"] }
        #expect(Set(ids).count == ids.count)
        for (name, attributes) in elements.found {
            #expect(attributes["src"] == nil && attributes["style"] == nil && attributes.keys.allSatisfy { !$0.hasPrefix("on") })
            if let target = attributes["href"] { #expect(name == "a" && target.hasPrefix("#") && ids.contains(String(target.dropFirst()))) }
        }
        #expect(!page.contains("url(") && !page.contains("@import"))
        #expect(page.contains("content=\"default-src 'none'; style-src 'unsafe-inline'\""))
    }

    @Test func textIsNotObeyed() throws {
        let hostile = #"<script>\"alert('&')\"</script> `</code>`"#
        let document = """
            {"info": {"title": "\(hostile)"}, "tags": [{"name": "x"}], "paths": {"/<b>": {"get":
            {"operationId": "\(hostile)", "tags": ["x"], "summary": "\(hostile)", "responses": {"200": {"description": "\(hostile)"}}}}}}
            """
        let page = try Page.browser.text(input: Array(document.utf8), version: "1", date: "d")
        #expect(!page.contains("<script>") && !page.contains("</code>`") && !page.contains("/<b>"))
        #expect(page.contains("&lt;script&gt;&quot;alert(&#39;&amp;&#39;)&quot;&lt;/script&gt; <code>&lt;/code&gt;</code>"))
    }

    @Test(arguments: [
        "", "{", "[1,]", "{\"a\" 1}", "\"a", "nul", "1 2", "{\"paths\": {}}", String(repeating: "[", count: 100_000),
        #"{"tags": [], "paths": {"/a": {"get": {"operationId": "a", "summary": "b", "tags": ["c"]}}}}"#,
    ])
    func aWrongDocumentIsAnError(text: String) {
        #expect(throws: (any Error).self) { try APIDescription(json: Array(text.utf8)) }
    }

    @Test func documentsKeepTheirOrder() throws {
        let node = try JSONNode(Array(#" {"b": [1, -2.5e3, true, null], "a": "x\né\\", "": {}} "#.utf8))
        #expect(node.members.map(\.key) == ["b", "a", ""])
        #expect(node["b"]?.elements == [.number("1"), .number("-2.5e3"), .bool(true), .null])
        #expect(node["a"] == .string("x\né\\") && node["c"] == nil)
    }

    @Test func articlesBecomePages() throws {
        let article = """
            # Name

            x - what it is

            # Use

            Type `a -b` (or `c`), see earshot(1). *No* more:

            | to | type |
            | --- | --- |
            | go | `it's` |

            - one
            - two
              lines

            ```console
            $ a --b 'c'
            .d
            ```

            """
        let page = try Page.security.text(input: [], article: article, version: "1", date: "d")
        #expect(
            page.hasSuffix(
                #"""
                .Sh NAME
                .Nm x
                .Nd what it is
                .Sh USE
                Type
                .Ic a \-b
                (or
                .Ql c ) ,
                see
                .Xr earshot 1 .
                .Em \&No
                more:
                .Bl -tag -width Ds
                .It Xo
                go
                .Xc
                .Ql it\(aqs
                .El
                .Bl -bullet
                .It
                one
                .It
                two lines
                .El
                .Bd -literal -offset indent
                $ a \-\-b \(aqc\(aq
                \&.d
                .Ed

                """#))
    }

    @Test func aWrongArticleIsAnError() {
        for text in ["text before", "# A\n\n| one |\n| --- |\n| x |", "# A\n\n```\nno end"] {
            #expect(throws: Article.Fault.self) { try Article(text) }
        }
    }
}
