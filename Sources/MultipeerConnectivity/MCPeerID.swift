public import Foundation
import Earshot

/// A peer of a multipeer session: a key that it proves, and a display name.
///
/// Two ids are equal, and hash equally, where their keys are, whatever their names and whichever objects they are. Making one makes a new key; an
/// id that should stay the same from one run of a program to the next is archived (`NSKeyedArchiver`). The archive holds the id and the name, and
/// may be sent anywhere; the private key goes into `~/.local/state/earshot/multipeer` (below `XDG_STATE_HOME` where that is set), mode 0600, when
/// the id is archived for the first time. Where it lies, an unarchived id is this machine's own again; elsewhere it is a remote peer's.
open class MCPeerID: NSObject, NSCopying, NSSecureCoding, @unchecked Sendable {
    /// The longest name, in bytes of UTF-8.
    static let nameLimit = DisplayName.byteLimit

    /// What people see of the peer: a label that anybody may choose.
    open var displayName: String { self.name }

    /// Who it is.
    let id: PeerID
    private let name: String
    /// Of one that was made in this process.
    private let pem: String?

    /// A new peer, with a key of its own.
    ///
    /// - Precondition: the name has 1 to 63 bytes of UTF-8, and no control characters.
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

    /// A peer that was found, or has called.
    init(id: PeerID, displayName: String) {
        self.id = id
        // What a peer says of itself; a label without any is as good as its id.
        self.name = displayName.isEmpty ? id.description : displayName
        self.pem = nil
        super.init()
    }

    /// The key, where this machine has it.
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

    /// Yes: an archive is read for this class alone.
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

    /// The peer of an archive; `nil` for anything else.
    public required init?(coder: NSCoder) {
        guard let id = coder.decodeObject(of: NSString.self, forKey: Self.idKey).flatMap({ PeerID(String(describing: $0)) }),
            let name = coder.decodeObject(of: NSString.self, forKey: Self.nameKey).map({ String(describing: $0) }),
            (try? DisplayName(name)) != nil
        else { return nil }
        self.id = id
        self.name = name
        self.pem = nil
        super.init()
    }
}
