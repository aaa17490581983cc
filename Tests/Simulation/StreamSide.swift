import EarshotCore
import EarshotWire
import NIOCore
import OrderedCollections

/// What moves a stream's bytes on one machine (`OutgoingFlow`, `IncomingFlow`): how many these are, and where they go.
enum StreamMover {
    case outgoing(Outgoing)
    case incoming(Incoming)
    case over

    struct Outgoing {
        let peer: PeerID
        var link: LinkID?
        /// What the writer has said, and whether that was all.
        var written: Int
        var isFinished: Bool
        var limit = 0
        var sent = 0
        var isLarge = false
        var hasEnded = false
        /// The data connection that they go over.
        var data: Int?

        /// So much has gone out: little, as schedules are short.
        static let large = 20_000
    }

    struct Incoming {
        let peer: PeerID
        let link: LinkID
        let window: Int
        /// Whether its reader takes what comes when it comes.
        let isEager: Bool
        var limit: Int
        var received = 0
        var taken = 0
        /// How many there are.
        var size: Int?
        /// The data connection that they come over.
        var data: Int?
        /// Whether the sender was asked to go on over the control connection.
        var isCalledBack = false
        /// Whether the reader has said that it has everything.
        var isFinished = false
    }

    var outgoing: Outgoing? { if case .outgoing(let mover) = self { mover } else { nil } }
    var incoming: Incoming? { if case .incoming(let mover) = self { mover } else { nil } }
}

/// What one machine's shell has of streams (`Node+StreamMovers.swift`).
struct StreamSide {
    var movers: OrderedDictionary<StreamID, StreamMover> = [:]
    /// Which stream a call has opened.
    var opened: OrderedDictionary<CallID, StreamID> = [:]
    /// What readers of events know of: whether it is open.
    var shown: OrderedDictionary<StreamID, Bool> = [:]
}
