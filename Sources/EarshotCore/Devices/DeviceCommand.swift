package import EarshotWire

/// A request of a LocalSend device, as a call. `origin` is the address that counts for limits: an IPv4 address or an IPv6 /64.
///
/// If the request's connection is lost before the answer, the shell reports `Input.callerGone`.
package enum DeviceCommand: Sendable, Hashable {
    /// Answered with `done` if the request may go on to its body.
    case checkPIN(String?, DeviceSender, origin: [UInt8])
    /// Answered with the offer's answer, after the decision of a user if one is asked.
    case offer(DeviceOffer, DeviceSender, origin: [UInt8])
    /// Answered with `done` when the file is received and in its place.
    case upload(DeviceUpload, DeviceSender)
    /// Always answered with `done`.
    case cancel(String?, DeviceSender)
}

/// An event that concerns LocalSend devices, and that is no call.
package enum DeviceEvent: Sendable, Equatable {
    /// A datagram that announces a device, or that answers an announcement. It came from an address on one of this machine's links.
    case announced(DeviceInfo, from: PeerAddress, isAnswer: Bool)
    /// A device has called `register` here.
    case registered(DeviceInfo, DeviceSender)
    /// The outcome of ``DeviceEffect/register(at:)``.
    case reached(PeerAddress, Result<DeviceAnswer, DeviceFailure>)
    /// The outcome of ``DeviceEffect/reserve(_:_:_:)``.
    case reserved(InvitationID, EarshotError?)
    /// The outcome of ``DeviceEffect/deliver(_:_:)``; `nil` if the message could not be written.
    case delivered(InvitationID, DeliveryOutcome?)
    /// A user looks at the peers, or sends something to a device.
    case wanted
    /// A report about an attempt to send something to a device.
    case shipped(ShipmentID, PeerID, ShipmentReport)
    /// The addresses of this machine have changed.
    case linksChanged
}

/// A device's answer to `register`: its proven id and its description of itself.
package struct DeviceAnswer: Sendable, Hashable {
    package let id: PeerID
    package let info: DeviceInfo

    package init(id: PeerID, info: DeviceInfo) {
        self.id = id
        self.info = info
    }
}

/// An action for LocalSend devices.
package enum DeviceEffect: Sendable, Equatable {
    /// Send one announcement on every link.
    case announce
    /// Call `register` at this address, and report the outcome.
    case register(at: PeerAddress)
    /// Answer an announcement by a datagram.
    case answerByDatagram
    /// Reserve the space for the files of an accepted offer, all of them or none, and report the outcome.
    case reserve(InvitationID, [DeviceReservation], QuotaShare)
    /// Release reserved space for which no upload has begun.
    case release([ResourceID])
    /// Deliver a text to the inbox, and report the outcome.
    case deliver(InvitationID, InboxMessage)
    /// Offer something to a device and upload it, and report the course of that.
    case ship(ShipmentID, DeviceShipment, DeviceTarget, pin: String?)
    /// Stop an attempt. Its connection is closed.
    case stopShipment(ShipmentID)
    /// Tell a device that its session has ended here.
    case cancel(session: String, DeviceTarget)
}

/// The space that an offered file needs.
package struct DeviceReservation: Sendable, Hashable {
    package let id: ResourceID
    package let size: UInt64

    package init(id: ResourceID, size: UInt64) {
        self.id = id
        self.size = size
    }
}

/// The settings for LocalSend.
package struct DeviceSettings: Sendable, Hashable {
    /// Whether devices are listed and their requests answered.
    package var isOn = false
    /// The PIN for senders that are not trusted; `nil` for none.
    package var pin: String?
    /// The time for which an offer waits for a user.
    package var offerTime = EarshotLimits.deviceOfferTime

    package init() {}
}
