import Foundation
import Earshot

/// The content of an invitation's context: the reason of the invitation, and the program's own context.
enum Envelope: Equatable {
    /// The program has invited the peer, with a browser for this type.
    case invitation(type: String, context: Data?)
    /// A member of the session has introduced the two peers to each other, or both programs have connected them.
    case introduced

    /// The prefix of an envelope, which distinguishes it from contexts of other programs.
    private static let magic: [UInt8] = Array("EMC1".utf8)
    private static let (invitedWithout, invitedWith, introducedMark): (UInt8, UInt8, UInt8) = (0, 1, 2)
    /// The maximum size of a program's context, in bytes: that of an Earshot invitation, less the size of the envelope.
    static let contextLimit = 8_000

    /// The encoded envelope; `nil` if the program's context is too long.
    var bytes: [UInt8]? {
        switch self {
        case .introduced: return Self.magic + [Self.introducedMark]
        case .invitation(let type, let context):
            guard (context?.count ?? 0) <= Self.contextLimit else { return nil }
            let head = Self.magic + [context == nil ? Self.invitedWithout : Self.invitedWith, UInt8(clamping: type.utf8.count)]
            return head + Array(type.utf8) + Array(context ?? Data())
        }
    }

    /// Decodes an envelope; `nil` if the bytes are not from a program with this module.
    init?(_ bytes: [UInt8]) {
        guard bytes.starts(with: Self.magic), let mark = bytes.dropFirst(Self.magic.count).first else { return nil }
        let rest = bytes.dropFirst(Self.magic.count + 1)
        switch mark {
        case Self.introducedMark:
            guard rest.isEmpty else { return nil }
            self = .introduced
        case Self.invitedWith, Self.invitedWithout:
            guard let length = rest.first.map(Int.init), rest.count > length,
                let type = try? ServiceType(String(decoding: rest.dropFirst().prefix(length), as: UTF8.self))
            else { return nil }
            let context = rest.dropFirst(1 + length)
            guard mark == Self.invitedWith || context.isEmpty else { return nil }
            self = .invitation(type: type.description, context: mark == Self.invitedWith ? Data(context) : nil)
        default: return nil
        }
    }
}

/// Members of a session and their addresses, sent from one member to another.
struct Introduction: TypedMessage, Equatable {
    static let contentType = "application/vnd.earshot.multipeer.introduction+json"

    /// A member.
    struct Member: Codable, Sendable, Equatable {
        var id: PeerID
        var name: String
        /// The addresses, such as `10.0.0.7:47110`.
        var addresses: [String]

        init(id: PeerID, name: String, addresses: [String]) {
            self.id = id
            self.name = name
            self.addresses = Array(addresses.prefix(Introduction.addressLimit))
        }

        init(_ pair: Pair) { self.init(id: pair.peer.id, name: pair.peer.displayName, addresses: pair.addresses ?? []) }
    }

    var members: [Member]

    /// The maximum number of addresses per member that are tried.
    static let addressLimit = 8
}
