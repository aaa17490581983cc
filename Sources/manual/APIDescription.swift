/// The parts of the control API's OpenAPI 3.1 document that the pages show.
struct APIDescription: Hashable {
    /// A call.
    struct Operation: Hashable {
        /// The HTTP method, in upper case.
        let method: String
        /// The path with its parameters, such as `/v1/peers/{peer}`.
        let path: String
        let node: JSONNode

        var id: String { self.node["operationId"]?.string ?? "" }
        var summary: String { self.node["summary"]?.string ?? "" }
        var description: String? { self.node["description"]?.string }
        /// The first tag of the call.
        var tag: String { self.node["tags"]?.elements.first?.string ?? "" }
    }

    enum Fault: Error, Hashable {
        /// A call has no name, no summary, or a tag that the document does not list.
        case incomplete(String)
    }

    let document: JSONNode
    /// The calls, in the document's order.
    let operations: [Operation]

    /// Throws a ``JSONNode/Fault`` or a ``Fault``.
    init(json: [UInt8]) throws {
        let document = try JSONNode(json)
        self.document = document
        self.operations = (document["paths"]?.members ?? []).flatMap { path in
            path.value.members.map { Operation(method: $0.key.uppercased(), path: path.key, node: $0.value) }
        }
        guard !self.operations.isEmpty else { throw Fault.incomplete("paths") }
        for operation in self.operations where operation.id.isEmpty || operation.summary.isEmpty || !self.tags.contains(operation.tag) {
            throw Fault.incomplete("\(operation.method) \(operation.path)")
        }
    }

    /// The tags by which the calls are grouped.
    var tags: [String] { (self.document["tags"]?.elements ?? []).compactMap { $0["name"]?.string } }

    func operations(of tag: String) -> [Operation] { self.operations.filter { $0.tag == tag } }

    /// The schemas by name, in the document's order.
    var schemas: [JSONNode.Member] { self.document["components"]?["schemas"]?.members ?? [] }

    /// Returns the target of a `$ref` within the document, or the node itself.
    func resolved(_ node: JSONNode) -> JSONNode {
        guard let reference = node["$ref"]?.string, reference.hasPrefix("#/") else { return node }
        var found: JSONNode? = self.document
        for part in reference.dropFirst(2).split(separator: "/") { found = found?[String(part)] }
        return found ?? node
    }
}
