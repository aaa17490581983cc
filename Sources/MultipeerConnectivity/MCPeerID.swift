public import Foundation
import Earshot

/// A peer of a multipeer session: a key that it proves, and a display name.
///
/// Two ids are equal, with equal hashes, if their keys are, even if their names or objects differ. A new id has a new key. To keep an id
/// for later runs of a program, archive it (`NSKeyedArchiver`). The archive contains the id and the name, and is not secret. The private
/// key is stored in `~/.local/state/earshot/multipeer` (below `XDG_STATE_HOME` if that is set), mode 0600, when the id is first archived.
/// On a machine that has the key, a decoded id is a local peer. On any other machine, it is a remote peer.
open class MCPeerID: NSObject, NSCopying, NSSecureCoding, @unchecked Sendable {
    /// The maximum length of a name, in bytes of UTF-8.
    static let nameLimit = DisplayName.byteLimit

    /// The display name, which anyone can choose.
    open var displayName: String { self.name }

    /// The peer id.
    let id: PeerID
    private let name: String
    /// The key and certificate of an id that was created in this process.
    private let pem: String?

    /// Creates a peer with a new key.
    ///
    /// - Precondition: The name has 1 to 63 bytes of UTF-8, and no control characters.
    public init(displayName myDisplayName: String) {
        guard (try? DisplayName(myDisplayName)) != nil else {
            preconditionFailure("MCPeerID: a display name has 1 to \(Self.nameLimit) bytes of UTF-8, and no control characters")
        }
        guard let pem = try? Identity.makePEM(), let identity = try? Identity(pem: pem) else {
            preconditionFailure("MCPeerID: the system makes no keys")
        }
        self.name = myDisplayName
        self.pem = pem
        self.id = identity.id
        super.init()
    }

    /// Creates the id of a peer that was found or has connected.
    init(id: PeerID, displayName: String) {
        self.id = id
        // The name is the peer's own claim. If it is empty, the id is used.
        self.name = displayName.isEmpty ? id.description : displayName
        self.pem = nil
        super.init()
    }

    /// The identity, if this machine has the key.
    var identity: Identity? {
        guard let pem = self.pem ?? KeyFiles.pem(of: self.id), let identity = try? Identity(pem: pem), identity.id == self.id else {
            return nil
        }
        return identity
    }

    // MARK: Equality

    open override func isEqual(_ object: Any?) -> Bool { (object as? MCPeerID)?.id == self.id }

    open override var hash: Int { self.id.hashValue }

    open override var description: String { "<MCPeerID \(self.id) DisplayName = \(self.name)>" }

    // MARK: Copying and archiving

    open func copy(with zone: NSZone? = nil) -> Any { self }

    /// Whether the class supports secure coding: archives are decoded only as this class.
    public static var supportsSecureCoding: Bool { true }

    private static let idKey = "earshot.id"
    private static let nameKey = "earshot.name"

    open func encode(with coder: NSCoder) {
        if let pem = self.pem {
            do {
                try KeyFiles.keep(pem, of: self.id)
            } catch {
                return coder.failWithError(error)
            }
        }
        coder.encode(self.id.description as NSString, forKey: Self.idKey)
        coder.encode(self.name as NSString, forKey: Self.nameKey)
    }

    /// Decodes an archived peer; `nil` for any other archive.
    public required init?(coder: NSCoder) {
        guard let id = coder.decodeObject(of: NSString.self, forKey: Self.idKey).flatMap({ PeerID(earshot: String(describing: $0)) }),
            let name = coder.decodeObject(of: NSString.self, forKey: Self.nameKey).map({ String(describing: $0) }),
            (try? DisplayName(name)) != nil
        else { return nil }
        self.id = id
        self.name = name
        self.pem = nil
        super.init()
    }
}
