import EarshotCore
import EarshotWire
import OrderedCollections

/// The LocalSend devices of a world, and their memory.
struct Devices {
    /// A session that a machine has granted to a device.
    struct Session {
        let machine: Int
        let run: Int
        let id: String
        let sender: DeviceSender
        let files: [DeviceFile]
        let tokens: [DeviceToken]
        /// The stamp of each file's content.
        let stamps: [UInt64]
        /// The files whose upload was answered with success.
        var done: OrderedSet<String> = []
    }

    /// An upload that a machine has begun to receive.
    struct Upload {
        let session: String
        let file: DeviceFile
        let content: Content
        let isWhole: Bool
        /// Whether the sender was refused before the content was complete on disk.
        var isRefused = false
        /// Whether the sender was told that the file is received.
        var isAnswered = false

        /// Whether the machine may list the file as received.
        var isRight: Bool {
            self.isWhole && self.content.count == self.file.size
                && (self.file.size == 0 || self.file.sha256.map { $0 == self.content.digest } ?? true)
        }
    }

    var sessions: [Session] = []
    var uploads: OrderedDictionary<ResourceID, Upload> = [:]
    /// The contents of the offers that wait, by machine and call.
    var offered: OrderedDictionary<[UInt64], [UInt64]> = [:]
    /// The resources that users have removed.
    var removed: OrderedSet<ResourceID> = []
    /// The texts whose senders were told that they are received, by machine.
    var texts: [(machine: Int, text: String)] = []
    /// The attempts of machines to send something to a device, and the conditions of devices.
    var attempts: [DeviceAttempt] = []
    var moods: [Int: (mood: DeviceMood, until: Instant)] = [:]
    /// The time at which each resource for a device was sent.
    var sent: [ResourceID: Instant] = [:]
    /// The number of contents so far. The stamps of peers' contents are lower.
    var stamps: UInt64 = 1 << 32

    mutating func newStamp() -> UInt64 {
        self.stamps += 1
        return self.stamps
    }
}

/// The body of an upload, which a device sends piece by piece.
struct DeviceBody {
    enum End {
        case ends, hangsUp, stalls
    }

    let call: CallID
    let content: Content
    let end: End
    var left: UInt64
}

/// The state of one machine's shell that concerns LocalSend, and the memory of the invariants of one run.
struct DeviceSide {
    var bodies: OrderedDictionary<CallID, DeviceBody> = [:]
    /// The space that is reserved for uploads that have not begun, and the number of reservations that the core has not been told of.
    var reserved: OrderedSet<ResourceID> = []
    var reserving = 0
    /// The devices' open calls that were given up.
    var gone: OrderedSet<CallID> = []
    /// The last call for a PIN that was answered with success.
    var lastPass: CallID?
    /// The ids that have shown their certificate to this machine.
    var proven: OrderedSet<PeerID> = []
    /// The invitation of each offer, by its call.
    var offers: OrderedDictionary<CallID, InvitationID> = [:]
    /// The invitations that a user has accepted, and those that were accepted for a good reason.
    var accepted: OrderedSet<InvitationID> = []
    var justified: OrderedSet<InvitationID> = []
    /// The transfer of each upload, by its call.
    var uploads: OrderedDictionary<CallID, ResourceID> = [:]
    /// The wrong PINs and their origins; no origin after a right PIN from there.
    var wrongPINs: [(origin: [UInt8], at: Instant)] = []
    /// The register requests.
    var registers: [(host: String, at: Instant)] = []

    /// Whether no PIN of that origin may be checked.
    mutating func isLocked(_ origin: [UInt8], at now: Instant) -> Bool {
        self.wrongPINs.removeAll { now - $0.at >= EarshotLimits.devicePINPeriod }
        return self.wrongPINs.count >= EarshotLimits.devicePINs
            || self.wrongPINs.count { $0.origin == origin } >= EarshotLimits.devicePINsPerAddress
    }
}
