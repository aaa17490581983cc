import Foundation

/// The API's OpenAPI document, as the tests use it: what the daemon answers and what the command line prints is held to it.
package struct APIDocument: Sendable {
    /// One call of the document.
    package struct Operation: Hashable, Sendable {
        /// Upper case.
        package let method: String
        /// With parameters, such as `/v1/peers/{peer}`.
        package let path: String

        package init(method: String, path: String) {
            self.method = method
            self.path = path
        }
    }

    /// An answer, as far as the document speaks of it.
    package struct Answer: Sendable {
        package let status: Int
        package let contentType: String?
        package let allow: String?
        package let body: [UInt8]

        package init(status: Int, contentType: String?, allow: String?, body: [UInt8]) {
            self.status = status
            self.contentType = contentType
            self.allow = allow
            self.body = body
        }
    }

    /// The document as it is in the sources, and compiled into the daemon.
    package static let shared: APIDocument = {
        let path = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../Sources/earshotd/OpenAPI/openapi.json")
        do {
            return APIDocument(root: try JSONValue(parsing: try Data(contentsOf: path)))
        } catch {
            fatalError("the API's document cannot be read: \(error)")
        }
    }()

    /// The whole.
    package let root: JSONValue
    private var validator: SchemaValidator { SchemaValidator(document: self.root) }

    /// Every call.
    package var operations: Set<Operation> {
        Set(
            (self.root["paths"]?.members ?? [:]).flatMap { path, calls in
                calls.members.keys.map { Operation(method: $0.uppercased(), path: path) }
            })
    }

    /// The names of the schemas.
    package var schemaNames: [String] { (self.root["components"]?["schemas"]?.members.keys).map { $0.sorted() } ?? [] }

    /// A schema by name.
    package func schema(_ name: String) -> JSONValue? { self.root["components"]?["schemas"]?[name] }

    /// The statuses that a call may answer with.
    package func statuses(_ operation: Operation) -> Set<Int> {
        Set((self.call(operation)?["responses"]?.members.keys ?? [:].keys).compactMap { Int($0) })
    }

    private func call(_ operation: Operation) -> JSONValue? {
        self.root["paths"]?[operation.path]?[operation.method.lowercased()]
    }

    /// Returns the path of the document that matches a request's target.
    package func template(_ target: String) -> String? {
        let segments = target.prefix { $0 != "?" }.split(separator: "/")
        return self.root["paths"]?.members.keys.sorted().first { template in
            let own = template.split(separator: "/")
            return own.count == segments.count && zip(own, segments).allSatisfy { $0.hasPrefix("{") || $0 == $1 }
        }
    }

    /// Returns the faults of a document, checked against the schema with this name.
    package func faults(_ bytes: some Sequence<UInt8>, as name: String) -> [String] {
        guard let schema = self.schema(name) else { return ["the document has no schema \(name)"] }
        guard let value = try? JSONValue(parsing: bytes) else { return ["not JSON: \(String(decoding: Array(bytes), as: UTF8.self))"] }
        return self.validator.faults(value, schema)
    }

    /// Returns the faults of an answer: an undocumented status, another content type, or a body that does not fit the schema.
    package func faults(_ method: String, _ target: String, _ answer: Answer) -> [String] {
        guard let template = self.template(target) else {
            return answer.status / 100 == 4 ? self.problemFaults(method, answer) : ["\(target) is not in the document"]
        }
        let operation = Operation(method: method == "HEAD" ? "GET" : method, path: template)
        guard self.call(operation) != nil else {
            guard [400, 403, 405, 431].contains(answer.status) else { return ["\(operation) is not in the document: \(answer.status)"] }
            return self.problemFaults(method, answer) + (answer.status == 405 && answer.allow == nil ? ["405 without Allow"] : [])
        }
        guard var response = self.call(operation)?["responses"]?[String(answer.status)] else {
            return ["\(operation): the status \(answer.status) is not in the document: \(String(decoding: answer.body, as: UTF8.self))"]
        }
        if let reference = response["$ref"] { response = self.validator.resolve(reference) ?? response }
        return method == "HEAD" ? [] : self.bodyFaults(answer, response).map { "\(operation) \(answer.status): \($0)" }
    }

    private func bodyFaults(_ answer: Answer, _ response: JSONValue) -> [String] {
        guard let content = response["content"] else { return answer.body.isEmpty ? [] : ["a body where there is none"] }
        guard let type = answer.contentType, let media = content[type] else {
            return ["the content type \(answer.contentType ?? "none") is not in the document"]
        }
        if let item = media["x-item-schema"] { return self.eventFaults(answer, item) }
        guard type.hasSuffix("json"), let schema = media["schema"] else { return [] }
        guard let value = try? JSONValue(parsing: answer.body) else { return ["not JSON"] }
        let status = type == "application/problem+json" && value["status"]?.number != Decimal(answer.status)
        return self.validator.faults(value, schema) + (status ? ["the problem's status is another one"] : [])
    }

    /// The whole lines of a stream.
    private func eventFaults(_ answer: Answer, _ schema: JSONValue) -> [String] {
        let isSSE = answer.contentType == "text/event-stream"
        var lines = String(decoding: answer.body, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false).dropLast()
            .filter { !$0.isEmpty }
        if isSSE { lines = lines.filter { $0.hasPrefix("data: ") }.map { $0.dropFirst(6) } }
        return lines.flatMap { line in
            (try? JSONValue(parsing: line.utf8)).map { self.validator.faults($0, schema) } ?? ["a line is not JSON: \(line)"]
        }
    }

    private func problemFaults(_ method: String, _ answer: Answer) -> [String] {
        guard answer.contentType == "application/problem+json" else { return ["not a problem: \(answer.contentType ?? "no content type")"] }
        return method == "HEAD" ? [] : self.faults(answer.body, as: "Problem")
    }
}
