import EarshotCore
import EarshotWire
import NIOCore
import OrderedCollections

/// The mover of a stream's bytes on one machine (`OutgoingFlow`, `IncomingFlow`): their number, and their route.
enum StreamMover {
    case outgoing(Outgoing)
    case incoming(Incoming)
    case over

    struct Outgoing {
        let peer: PeerID
        var link: LinkID?
        /// The bytes from the writer so far, and whether that is all.
        var written: Int
        var isFinished: Bool
        var limit = 0
        var sent = 0
        var isLarge = false
        var hasEnded = false
        /// The data connection that carries the bytes.
        var data: Int?

        /// The bytes after which a stream counts as large: few, as schedules are short.
        static let large = 20_000
    }

    struct Incoming {
        let peer: PeerID
        let link: LinkID
        let window: Int
        /// Whether its reader takes bytes as they arrive.
        let isEager: Bool
        var limit: Int
        var received = 0
        var taken = 0
        /// The size of the stream, once known.
        var size: Int?
        /// The data connection that carries the bytes.
        var data: Int?
        /// Whether the sender was asked to continue over the control connection.
        var isCalledBack = false
        /// Whether the reader has reported that it has everything.
        var isFinished = false
    }

    var outgoing: Outgoing? { if case .outgoing(let mover) = self { mover } else { nil } }
    var incoming: Incoming? { if case .incoming(let mover) = self { mover } else { nil } }
}

/// The stream state of one machine's shell (`Node+StreamMovers.swift`).
struct StreamSide {
    var movers: OrderedDictionary<StreamID, StreamMover> = [:]
    /// The streams that calls have opened.
    var opened: OrderedDictionary<CallID, StreamID> = [:]
    /// The streams known to subscribers of events, and whether they are open.
    var shown: OrderedDictionary<StreamID, Bool> = [:]
}
