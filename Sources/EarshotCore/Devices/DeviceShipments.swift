package import EarshotWire
package import NIOCore
import OrderedCollections

/// A message or a resource for a LocalSend device.
package enum DeviceCargo: Sendable, Hashable {
    case message(MessageID)
    case resource(ResourceID)
}

/// The id of one attempt to send something to a device: a counter.
package struct ShipmentID: Sendable, Hashable {
    package let number: UInt64

    package init(number: UInt64) { self.number = number }
}

/// The content of one attempt.
package enum DeviceShipment: Sendable, Hashable {
    /// A message; its body is on disk if it is `nil`.
    case message(MessageID, contentType: String, body: ByteBuffer?)
    case resource(Resource, StoredTransfer.Source)
}

/// A report about an attempt.
package enum ShipmentReport: Sendable, Equatable {
    /// The device has accepted the offer, in a session with this id.
    case accepted(session: String)
    /// The bytes of a resource that were sent, counted from the start.
    case moved(to: UInt64)
    /// The device has everything.
    case delivered
    case failed(DeviceFailure)
    /// The source cannot be read.
    case sourceFailed(EarshotError)
}

/// The messages and resources for LocalSend devices. A device receives one thing at a time, in the order of the requests.
struct DeviceShipments: Sendable {
    struct Shipment: Sendable {
        let id: ShipmentID
        let cargo: DeviceCargo
        let target: DeviceTarget
        /// The session at the device, once it has accepted the offer.
        fileprivate(set) var session: String?
    }

    private struct Queue: Sendable {
        var waiting: OrderedSet<DeviceCargo> = []
        var current: Shipment?
        /// The number of consecutive failures.
        var failures = 0
    }

    private var queues: OrderedDictionary<PeerID, Queue> = [:]
    private var total: UInt64 = 0

    /// Whether anything waits or is being sent.
    var isEmpty: Bool { self.queues.isEmpty }
    var devices: OrderedSet<PeerID> { self.queues.keys }

    mutating func append(_ cargo: DeviceCargo, to device: PeerID) { self.queues[device, default: Queue()].waiting.append(cargo) }

    func current(_ device: PeerID) -> Shipment? { self.queues[device]?.current }

    /// Begins the next attempt, unless one is under way or nothing waits.
    mutating func next(to target: DeviceTarget) -> Shipment? {
        guard self.queues[target.id]?.current == nil, let cargo = self.queues[target.id]?.waiting.first else { return nil }
        self.total += 1
        let shipment = Shipment(id: ShipmentID(number: self.total), cargo: cargo, target: target)
        self.queues[target.id]?.current = shipment
        return shipment
    }

    mutating func accepted(_ session: String, by device: PeerID) { self.queues[device]?.current?.session = session }

    /// Ends the present attempt, which is repeated later. Returns the pause before that.
    mutating func retry(_ device: PeerID) -> Duration {
        self.queues[device]?.current = nil
        let failures = self.queues[device]?.failures ?? 0
        self.queues[device]?.failures += 1
        let delays = EarshotLimits.deviceRetryDelays
        return delays[min(failures, delays.count - 1)]
    }

    /// Removes a cargo that is done. Returns its attempt, if one is under way.
    mutating func remove(_ cargo: DeviceCargo, of device: PeerID) -> Shipment? {
        guard let queue = self.queues[device] else { return nil }
        self.queues[device]?.waiting.remove(cargo)
        self.queues[device]?.failures = 0
        let current = queue.current?.cargo == cargo ? queue.current : nil
        if current != nil { self.queues[device]?.current = nil }
        if self.queues[device]?.waiting.isEmpty == true, self.queues[device]?.current == nil { self.queues[device] = nil }
        return current
    }

    /// Returns everything for a device, in order.
    func all(for device: PeerID) -> OrderedSet<DeviceCargo> { self.queues[device]?.waiting ?? [] }
}
