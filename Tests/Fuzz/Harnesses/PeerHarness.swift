import EarshotCoding
import EarshotWire

/// Peer ids: the input stands in the place of an id.
///
/// An accepted id has one written form, in upper or lower case, and the same form in JSON. Any other input is refused.
enum PeerHarness: Harness {
    static func run(_ input: [UInt8]) {
        let text = String(decoding: input, as: UTF8.self)
        if let id = PeerID(text), id != .unprovenDevice {
            demand(id.bytes.count == PeerID.byteCount, "an id is a digest")
            demand(id.description.utf8.elementsEqual(text.uppercased().utf8), "an id has one written form")
            demand(PeerID(id.description) == id && PeerID(id.description.lowercased()) == id, "either case is the same id")
            demand(PeerID(bytes: id.bytes, kind: id.kind) == id, "the digest and the kind are the id")
            demand((try? MessageCoding.standard.encode([id])) == Array("[\"\(id.description)\"]".utf8), "it is written so in JSON")
        }
        if let id = PeerID(bytes: input) {
            demand(PeerID(id.description) == id, "every digest has a written form")
            demand(id.description.utf8.count == PeerID.textLength, "which is of one length")
        }
        guard let list = try? MessageCoding.standard.decode([PeerID].self, from: input) else { return }
        demand((try? MessageCoding.standard.decode([PeerID].self, from: MessageCoding.standard.encode(list))) == list, "lists too")
    }
}
