import ArgumentParser

/// A media type that a user asks for: `text/plain`, or `image/*` for all subtypes.
struct ContentType: Hashable, Sendable, ExpressibleByArgument {
    private let type: String
    /// `nil` for all.
    private let subtype: String?

    init?(argument: String) {
        let parts = argument.lowercased().split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty, !argument.contains(where: { $0 == ";" || $0.isWhitespace }) else {
            return nil
        }
        self.type = String(parts[0])
        self.subtype = parts[1] == "*" ? nil : String(parts[1])
    }

    /// Whether a message's content type is this one. Letter case and parameters, such as `charset`, do not count.
    func includes(_ contentType: String) -> Bool {
        let essence = contentType.lowercased().prefix { $0 != ";" }.split(separator: " ").joined()
        guard let subtype = self.subtype else { return essence.hasPrefix("\(self.type)/") }
        return essence == "\(self.type)/\(subtype)"
    }
}
