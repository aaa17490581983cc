package import EarshotCore
package import EarshotWire
package import NIOCore

/// The node's side of LocalSend: the requests of devices, passed on by a ``DeviceTransport``, which moves bytes and decides nothing.
///
/// A request is one call of a method. If its task is cancelled, its connection is gone.
package protocol DeviceRequests: Sendable {
    /// This machine's description, for `info`, `register` and announcements. `fingerprint` and `port` are the transport's.
    func deviceName() async -> String
    /// Reports that this machine's networks have changed, so that devices may have lost its announcement. Must return at once.
    func deviceLinksChanged()
    /// Reports a datagram that announces a device, or that answers an announcement.
    func deviceAnnounced(_ info: DeviceInfo, from address: PeerAddress, isAnswer: Bool)
    /// Reports a `register` request. The claimed fingerprint is compared with the certificate's here.
    func deviceRegistered(_ info: DeviceInfo, by sender: DeviceSender)
    /// Decides about the PIN of a `prepare-upload` request, before its body is read.
    func checkDevicePIN(_ pin: String?, of sender: DeviceSender) async throws(DeviceRefusal)
    /// Decides about an offer, which may wait for a user.
    func deviceOffered(_ offer: DeviceOffer, by sender: DeviceSender) async throws(DeviceRefusal) -> DeviceOfferAnswer
    /// Receives a file. `body` gives its bytes with back-pressure.
    func deviceUploads(
        _ upload: DeviceUpload, by sender: DeviceSender, body: any AsyncSequence<ByteBuffer, any Error> & Sendable
    ) async throws(DeviceRefusal)
    /// Cancels a session, or with `nil` the pending offer of the sender.
    func deviceCancels(_ session: String?, by sender: DeviceSender) async throws(DeviceRefusal)
}

/// The HTTPS server, the HTTPS client and the multicast announcements of LocalSend.
package protocol DeviceTransport: Sendable {
    /// Binds the ports and makes or loads the certificate. Returns the TCP port. May be called again after ``run()`` has ended.
    func start(_ requests: any DeviceRequests) async throws -> UInt16
    /// Why announcements are not received, so that devices and this machine may not find each other; `nil` if they are.
    var announcementFailure: String? { get }
    /// The numbers of announcements that were dropped since the start.
    var droppedAnnouncements: DroppedAnnouncements { get }
    /// The fingerprint of the certificate, as devices show it; `nil` before the first start.
    var fingerprint: String? { get }
    /// Serves until the task is cancelled.
    func run() async
    /// Sends one announcement to the multicast groups on every link.
    func announce(_ name: String) async
    /// Answers an announcement by UDP to the multicast groups.
    func answerByDatagram(_ name: String) async
    /// Calls `register` at an address. Returns the proven id and the device's description of itself.
    func register(at address: PeerAddress, name: String) async throws(DeviceFailure) -> (PeerID, DeviceInfo)
    /// Offers files to a device. Its user may take minutes to answer. If the task is cancelled, the connection is closed, which withdraws the offer.
    func offer(_ files: [DeviceFile], to target: DeviceTarget, name: String, pin: String?) async throws(DeviceFailure) -> DeviceOfferAnswer
    /// Uploads one file.
    func upload(
        _ upload: DeviceUpload, size: UInt64, to target: DeviceTarget, body: any AsyncSequence<ByteBuffer, any Error> & Sendable
    ) async throws(DeviceFailure)
    /// Cancels a session of this machine's at a device.
    func cancel(session: String, at target: DeviceTarget) async throws(DeviceFailure)
}

/// The numbers of datagrams that a transport has dropped.
package struct DroppedAnnouncements: Sendable, Hashable {
    /// Over the limits on their rate.
    package var excess: Int
    /// Too long, not a description of a device, or from another network.
    package var malformed: Int

    package init(excess: Int = 0, malformed: Int = 0) {
        self.excess = excess
        self.malformed = malformed
    }
}
