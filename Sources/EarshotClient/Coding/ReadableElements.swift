/// A list in an answer. An element that a client cannot read is left out and recorded; the other elements are read.
@propertyWrapper
public struct ReadableElements<Element: Codable & Hashable & Sendable>: Codable, Hashable, Sendable {
    /// The readable elements, in order.
    public let wrappedValue: [Element]

    /// Wraps a list.
    public init(_ elements: [Element]) { self.wrappedValue = elements }

    /// An element that always decodes successfully, so that the decoder can proceed to the next one.
    private struct Place: Decodable {
        let element: Result<Element, any Error>

        init(from decoder: any Decoder) throws {
            self.element = Result { try Element(from: decoder) }
        }
    }

    /// Decodes a list.
    public init(from decoder: any Decoder) throws {
        guard let notes = decoder.userInfo.unreadable else {
            self.wrappedValue = try decoder.singleValueContainer().decode([Element].self)
            return
        }
        var container = try decoder.unkeyedContainer()
        var elements: [Element] = []
        elements.reserveCapacity(container.count ?? 0)
        while !container.isAtEnd {
            switch try container.decode(Place.self).element {
            case .success(let element): elements.append(element)
            case .failure(let error): notes.add(error)
            }
        }
        self.wrappedValue = elements
    }

    /// Encodes the list.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(self.wrappedValue)
    }
}
