internal import EarshotSafety
package import NIOCore

/// A frame about a resource: its offer, its bytes, its end.
package enum ResourceFrame: Sendable, Hashable {
    case offer(ResourceOffer)
    case accept(ResourceAccept)
    case refuse(ResourceRefuse)
    case chunk(ResourceChunk)
    case end(ResourceEnd)
    case done(ResourceID)
    case cancel(ResourceRefuse)
    case have(ResourceHave)
    case from(ResourceFrom)

    package var type: FrameType {
        switch self {
        case .offer: .resourceOffer
        case .accept: .resourceAccept
        case .refuse: .resourceRefuse
        case .chunk: .resourceChunk
        case .end: .resourceEnd
        case .done: .resourceDone
        case .cancel: .resourceCancel
        case .have: .resourceHave
        case .from: .resourceFrom
        }
    }

    /// The bytes of the resource that the frame carries.
    package var content: ByteBuffer? { if case .chunk(let chunk) = self { chunk.data } else { nil } }

    /// Writes the fields; the last one, if it is the content, is returned instead.
    func write(into writer: inout PayloadWriter) throws(WireError) -> ByteBuffer? {
        switch self {
        case .offer(let offer):
            writer.identifier(offer.session)
            writer.identifier(offer.id)
            writer.integer(offer.kind.rawValue)
            try writer.integer("size", offer.size, in: 0...WireLimits.resourceSize)
            try writer.text("name", offer.name, as: UInt16.self, in: 0...WireLimits.resourceName)
            try offer.attributes?.encode(into: &writer, of: offer.kind)
        case .accept(let accept):
            writer.identifier(accept.id)
            try writer.integer("offset", accept.offset, in: 0...WireLimits.resourceSize)
            try writer.integer("limit", accept.limit, in: accept.offset...WireLimits.resourceSize)
        case .refuse(let refuse), .cancel(let refuse):
            writer.identifier(refuse.id)
            try refuse.refusal.write(into: &writer)
        case .chunk(let chunk):
            writer.identifier(chunk.id)
            try writer.integer("offset", chunk.offset, in: 0...WireLimits.resourceSize)
            try writer.length("data", chunk.data.readableBytes, as: UInt32.self, in: 1...WireLimits.chunkData)
            guard chunk.offset + UInt64(chunk.data.readableBytes) <= WireLimits.resourceSize else { throw writer.malformed("offset") }
        case .end(let end):
            writer.identifier(end.id)
            writer.integer(end.algorithm.rawValue)
            try writer.length("digest", end.digest.count, as: UInt8.self, in: 1...WireLimits.digest)
            try writer.bytes("digest", end.digest, count: end.digest.count)
        case .done(let id): writer.identifier(id)
        case .have(let have):
            writer.identifier(have.id)
            try writer.integer("offset", have.offset, in: 1...WireLimits.resourceSize)
            try writer.bytes("digest", have.digest, count: WireLimits.prefixDigest)
        case .from(let from):
            writer.identifier(from.id)
            try writer.integer("offset", from.offset, in: 0...WireLimits.resourceSize)
        }
        return self.content
    }
}

package struct ResourceOffer: Sendable, Hashable {
    package enum Kind: UInt8, Sendable, Hashable {
        case file = 1
        case directory = 2
    }
    package var session: SessionID
    package var id: ResourceID
    package var kind: Kind
    /// The size in bytes, at most `WireLimits.resourceSize`.
    package var size: UInt64
    /// Untrusted; becomes a path only through `SafeName`.
    package var name: String
    /// Whether the name may become one component of a path.
    package var isNameSafe: Bool { (try? SafeName(self.name)) != nil }
    /// The attributes of a file, if its sender knows them. Sent only if both hellos carry ``HelloExtension/fileAttributes``. A directory
    /// transmits those of its entries in its content.
    package var attributes: FileAttributes?
    package init(session: SessionID, id: ResourceID, kind: Kind, size: UInt64, name: String, attributes: FileAttributes? = nil) {
        self.session = session
        self.id = id
        self.kind = kind
        self.size = size
        self.name = name
        self.attributes = attributes
    }
}

/// Accepts the bytes from `offset` up to, but not including, `limit`. The receiver repeats the frame with a higher limit as it writes the
/// bytes. This is a window as in RFC 9113 section 5.2, so that a slow disk never delays messages.
package struct ResourceAccept: Sendable, Hashable {
    package var id: ResourceID
    package var offset: UInt64
    package var limit: UInt64
    package init(id: ResourceID, offset: UInt64, limit: UInt64) {
        self.id = id
        self.offset = offset
        self.limit = limit
    }

    /// Whether the bytes from the offset on are to come over a data connection, if the whole has `size` bytes.
    package func isForDataConnection(size: UInt64) -> Bool { self.limit == self.offset && self.offset < size }
}

/// Says that the receiver holds the beginning of an offered resource from an earlier connection, and asks whether that is still valid.
package struct ResourceHave: Sendable, Hashable {
    package var id: ResourceID
    /// The number of bytes held, from the start; at least 1.
    package var offset: UInt64
    /// The XXH3-128 digest of these bytes, `WireLimits.prefixDigest` bytes.
    package var digest: [UInt8]
    package init(id: ResourceID, offset: UInt64, digest: [UInt8]) {
        self.id = id
        self.offset = offset
        self.digest = digest
    }
}

/// Answers ``ResourceHave``: with its offset if the source begins with those bytes, otherwise with 0.
package struct ResourceFrom: Sendable, Hashable {
    package var id: ResourceID
    package var offset: UInt64
    package init(id: ResourceID, offset: UInt64) {
        self.id = id
        self.offset = offset
    }
}

package struct ResourceRefuse: Sendable, Hashable {
    package var id: ResourceID
    package var refusal: Refusal
    package init(id: ResourceID, refusal: Refusal) {
        self.id = id
        self.refusal = refusal
    }
}

package struct ResourceChunk: Sendable, Hashable {
    package var id: ResourceID
    package var offset: UInt64
    package var data: ByteBuffer
    package init(id: ResourceID, offset: UInt64, data: ByteBuffer) {
        self.id = id
        self.offset = offset
        self.data = data
    }
}

/// Says that all bytes were sent. The receiver checks the digest of the whole before it publishes and answers `resourceDone`.
package struct ResourceEnd: Sendable, Hashable {
    package enum DigestAlgorithm: UInt8, Sendable, Hashable {
        /// XXH3, 128 bits, canonical (big-endian) form. It detects faults; TLS protects against attackers.
        case xxh3 = 1
        case sha256 = 2
    }
    package var id: ResourceID
    package var algorithm: DigestAlgorithm
    package var digest: [UInt8]
    package init(id: ResourceID, algorithm: DigestAlgorithm, digest: [UInt8]) {
        self.id = id
        self.algorithm = algorithm
        self.digest = digest
    }
}
