import EarshotWire
import OrderedCollections
import Testing

@testable import EarshotCore

/// Returns the id of a device, whose certificate is one byte.
func deviceID(_ number: UInt8) -> PeerID { PeerID(deviceCertificate: [number]) }

extension DeviceSender {
    /// A phone that shows its certificate.
    static let phone = DeviceSender.device(1)
    /// A sender that shows none.
    static let nobody = DeviceSender(id: nil, address: PeerAddress(host: "10.77.0.9", zone: nil, port: 40_000))

    static func device(_ number: UInt8, at host: String = "10.77.0.2", port: UInt16 = 40_000) -> DeviceSender {
        DeviceSender(id: deviceID(number), address: PeerAddress(host: host, zone: nil, port: port))
    }
}

extension DeviceInfo {
    /// A device's description of itself.
    static func of(_ id: PeerID?, named alias: String = "Pixel", port: UInt16? = 53317) -> DeviceInfo {
        DeviceInfo(alias: alias, version: "2.1", fingerprint: id?.fingerprint?.lowercased() ?? "", port: port)
    }
}

extension DeviceFile {
    static func photo(
        _ id: String = "a", named name: String = "photo.jpg", size: UInt64 = 10, sha256: [UInt8]? = nil
    ) -> DeviceFile {
        DeviceFile(id: id, name: name, size: size, contentType: "image/jpeg", sha256: sha256)
    }

    static func text(_ text: String) -> DeviceFile {
        DeviceFile(id: "t", name: "x.txt", size: UInt64(text.utf8.count), contentType: "text/plain", preview: text)
    }
}

extension Answer {
    var isUpload: Bool { if case .deviceOffer(.upload) = self { true } else { false } }
}

extension CoreBench {
    /// Returns a core that speaks LocalSend.
    static func forDevices(_ change: (inout CoreSettings) -> Void = { _ in }) -> CoreBench {
        CoreBench {
            $0.devices.isOn = true
            change(&$0)
        }
    }

    /// Makes an offer. Returns its call.
    @discardableResult
    mutating func offer(
        _ files: [DeviceFile] = [.photo()], by sender: DeviceSender = .phone, from origin: [UInt8] = [10, 77, 0, 2],
        named alias: String = "Pixel"
    ) -> CallID {
        self.call(.device(.offer(DeviceOffer(info: .of(sender.id, named: alias), files: files), sender, origin: origin)))
        return self.lastCall
    }

    /// Makes an offer. Returns the refusal.
    mutating func refusedOffer(
        _ files: [DeviceFile] = [.photo()], by sender: DeviceSender = .phone, from origin: [UInt8] = [10, 77, 0, 2]
    ) -> DeviceRefusal? {
        let call = self.offer(files, by: sender, from: origin)
        return self.refusal(of: call)
    }

    /// Makes an offer. Returns whether it waits for an answer.
    mutating func offerWaits(
        _ files: [DeviceFile] = [.photo()], by sender: DeviceSender = .phone, from origin: [UInt8] = [10, 77, 0, 2]
    ) -> Bool {
        let call = self.offer(files, by: sender, from: origin)
        return self.answers[call] == nil
    }

    /// Makes an offer that is accepted by the settings or a user, with space for its files. Returns its session.
    mutating func session(_ files: [DeviceFile] = [.photo()], by sender: DeviceSender = .phone) throws -> (
        id: String, tokens: [DeviceToken]
    ) {
        let call = self.offer(files, by: sender)
        if let pending = self.pending.last { self.call(.respond(pending, .accept, always: false)) }
        self.reserve()
        guard case .deviceOffer(.upload(let session, let tokens))? = self.answers[call] else {
            throw EarshotError(.conflict, "\(String(describing: self.answers[call]))")
        }
        return (session, tokens)
    }

    /// Reports the space of the last accepted offer as reserved, or not.
    mutating func reserve(_ error: EarshotError? = nil) {
        let ids = self.deviceEffects.compactMap { if case .reserve(let id, _, _) = $0 { id } else { nil } }
        if let id = ids.last { self.handle(.device(.reserved(id, error))) }
    }

    /// Begins an upload. Returns its call.
    mutating func upload(_ session: String, _ token: DeviceToken, by sender: DeviceSender = .phone) -> CallID {
        self.call(.device(.upload(DeviceUpload(session: session, file: token.file, token: token.token), sender)))
        return self.lastCall
    }

    /// Tries to begin an upload. Returns the refusal.
    mutating func refusedUpload(_ session: String, _ token: DeviceToken, by sender: DeviceSender = .phone) -> DeviceRefusal? {
        let call = self.upload(session, token, by: sender)
        return self.refusal(of: call)
    }

    /// Tries to begin an upload. Returns whether it has begun.
    mutating func uploadBegins(_ session: String, _ token: DeviceToken) -> Bool {
        let call = self.upload(session, token)
        return self.answers[call] == nil
    }

    /// The transfers that are being received, in their order.
    var uploads: [Resource] { self.core.resources(at: self.now.monotonic).filter { $0.direction == .incoming && !$0.state.isFinal } }

    /// Receives all bytes of an upload, and reports them as verified and saved.
    mutating func receiveAll(_ id: ResourceID) throws {
        let size = try self.core.resource(id, at: self.now.monotonic).size
        for report: TransferReport in [.began, .written(to: size), .bodyEnded, .settled("xxh3:00")] { self.handle(.transfer(id, report)) }
    }

    func refusal(of call: CallID) -> DeviceRefusal? {
        if case .deviceRefusal(let refusal)? = self.answers[call] { refusal } else { nil }
    }

    /// The requests to register with devices.
    var registers: [PeerAddress] { self.deviceEffects.compactMap { if case .register(let address) = $0 { address } else { nil } } }

    /// Receives an announcement from an address.
    mutating func announce(_ info: DeviceInfo, from host: String = "10.77.0.2", isAnswer: Bool = false) {
        self.handle(.device(.announced(info, from: PeerAddress(host: host, zone: nil, port: 5), isAnswer: isAnswer)))
    }

    /// Lists a device that calls `register`.
    mutating func register(_ number: UInt8, named alias: String = "Pixel", at host: String = "10.77.0.2") {
        let sender = DeviceSender.device(number, at: host)
        self.handle(.device(.registered(.of(sender.id, named: alias), sender)))
    }
}

extension ResourceDraft {
    /// A file for the phone.
    static func forPhone(
        queue: Bool = false, kind: Resource.Kind = .file, source: StoredTransfer.Source = .path, pin: String? = nil
    ) -> ResourceDraft {
        ResourceDraft(
            id: ResourceID(high: 1, low: 1), to: Conversation(with: deviceID(1)), name: "a.jpg", kind: kind, size: 10, path: "/a.jpg",
            source: source, isQueued: queue, pin: pin)
    }
}

extension CoreBench {
    /// Returns a core with a trusted phone that is there.
    static func meetingPhone() -> CoreBench {
        var bob = CoreBench.forDevices()
        bob.register(1)
        bob.call(.setTrust(.trusted, deviceID(1).description, until: nil))
        return bob
    }

    /// The attempts to send something to a device.
    var shipments: [(id: ShipmentID, content: DeviceShipment, target: DeviceTarget)] {
        self.deviceEffects.compactMap { if case .ship(let id, let content, let target, _) = $0 { (id, content, target) } else { nil } }
    }

    /// The PINs of these attempts.
    var shipmentPINs: [String?] { self.deviceEffects.compactMap { if case .ship(_, _, _, let pin) = $0 { .some(pin) } else { nil } } }

    var shipment: (id: ShipmentID, content: DeviceShipment, target: DeviceTarget)? { self.shipments.last }

    /// Reports the course of an attempt to send something to the phone.
    mutating func report(_ id: ShipmentID, _ report: ShipmentReport, of device: PeerID = deviceID(1)) {
        self.handle(.device(.shipped(id, device, report)))
    }
}
