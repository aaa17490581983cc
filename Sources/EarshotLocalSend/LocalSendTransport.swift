package import Earshot
package import EarshotCore
package import EarshotWire
package import Logging
package import NIOCore
import NIOPosix
import Synchronization

/// LocalSend's protocol 2.2, between the node and the network.
///
/// LocalSend is HTTP over TLS between devices that find each other by multicast. Each device is a server (TCP) and a client: the sender of
/// files calls the receiver's server, and a receiver that cancels calls the sender's. A device is known by the SHA-256 of its self-signed
/// certificate, which each side takes from the TLS handshake. Nothing that a device says about itself is believed here.
///
/// The parts:
/// - `DeviceServer` accepts connections. `RequestHandler` and its state machine bring one request at a time to `DeviceConnection`, whose
///   task calls the node (`DeviceRequests`) and answers. The task is cancelled when the connection ends, so a sender that hangs up withdraws
///   its offer.
/// - `DeviceClient` makes one connection for each request, with `ExchangeHandler` and its state machine. The certificate is compared before
///   a byte of the request is sent.
/// - `DeviceMulticast` sends and receives announcements, and `LinkChanges` joins the groups again when the networks change.
/// - The messages are values that are coded in JSON (`InfoMessage`, `OfferMessage`). Every size has a limit (`LocalSendLimits`).
///
/// The transport decides nothing. Whether an offer is taken, whether a PIN is right and whether a device is listed is the core's matter. The
/// transport only bounds the work: connections by number and address, heads, bodies, silence and datagrams.
///
/// All channels are on the event loops that the creator passes.
package final class LocalSendTransport: DeviceTransport {
    /// The ports, and the directory of the certificate.
    package struct Configuration: Sendable {
        /// The TCP port. If it is taken, any free one is used.
        package var port: UInt16
        /// The UDP port of the announcements; `nil` to announce and receive none.
        package var multicastPort: UInt16?
        /// The state directory; `nil` for a certificate that lasts as long as the process.
        package var stateDirectory: String?

        package init(port: UInt16 = LocalSendTransport.usualPort, multicastPort: UInt16? = usualPort, stateDirectory: String?) {
            self.port = port
            self.multicastPort = multicastPort
            self.stateDirectory = stateDirectory
        }
    }

    /// The port that all devices use unless it is taken, TCP and UDP.
    package static let usualPort: UInt16 = LocalSendLimits.port

    /// The parts that exist after ``start(_:)``.
    private struct Parts: Sendable {
        let node: any DeviceRequests
        let certificate: DeviceCertificate
        let server: DeviceServer
        let client: DeviceClient
        let multicast: DeviceMulticast?
        let linkChanges: LinkChanges?
        let port: UInt16
    }

    private let configuration: Configuration
    private let group: any EventLoopGroup
    private let logger: Logger
    private let parts = Mutex<Parts?>(nil)

    package init(
        _ configuration: Configuration, group: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton, logger: Logger
    ) {
        self.configuration = configuration
        self.group = group
        self.logger = logger
    }

    /// This machine's id as a device, and its fingerprint as devices show it; `nil` before the start.
    package var identity: (id: PeerID, fingerprint: String)? {
        self.parts.withLock { $0 }.map { ($0.certificate.id, $0.certificate.fingerprint) }
    }

    package var fingerprint: String? { self.identity?.fingerprint }

    package var announcementFailure: String? { self.parts.withLock { $0?.multicast?.failure } }

    package var droppedAnnouncements: DroppedAnnouncements {
        self.parts.withLock { $0?.multicast?.counts.dropped } ?? DroppedAnnouncements()
    }

    // MARK: Life

    package func start(_ requests: any DeviceRequests) async throws -> UInt16 {
        // A former run may still be ending, and holds the port.
        await self.parts.withLock { $0 }?.server.stop()
        let certificate = try await Self.certificate(self.configuration.stateDirectory)
        let tls = try DeviceTLS(certificate, on: self.group)
        let links = CurrentLinks()
        let server = DeviceServer(tls: tls, own: certificate.id, links: links, group: self.group, logger: self.logger)
        let port = try await server.listen(port: self.configuration.port)
        var multicast: DeviceMulticast?
        var linkChanges: LinkChanges?
        if let multicastPort = self.configuration.multicastPort {
            let loop = self.group.any()
            let announcements = DeviceMulticast(port: multicastPort, on: loop, logger: self.logger)
            await announcements.start(ownFingerprint: certificate.fingerprint, links: links) { info, address, isAnswer in
                requests.deviceAnnounced(info, from: address, isAnswer: isAnswer)
            }
            let changes = LinkChanges(on: loop, logger: self.logger) { if announcements.join() { requests.deviceLinksChanged() } }
            changes.start()
            multicast = announcements
            linkChanges = changes
        }
        let parts = Parts(
            node: requests, certificate: certificate, server: server, client: DeviceClient(tls: tls, group: self.group),
            multicast: multicast, linkChanges: linkChanges, port: port)
        self.parts.withLock { $0 = parts }
        return port
    }

    /// Loads the certificate, on the pool of tasks. Making one takes some tenths of a second.
    @concurrent private static func certificate(_ directory: String?) async throws(EarshotError) -> DeviceCertificate {
        try DeviceCertificate.load(from: directory)
    }

    package func run() async {
        guard let parts = self.parts.withLock({ $0 }) else { return }
        let fingerprint = parts.certificate.fingerprint
        await parts.server.run(parts.node) { InfoMessage(name: $0, fingerprint: fingerprint) }
        parts.linkChanges?.stop()
        parts.multicast?.stop()
    }

    // MARK: Announcements

    package func announce(_ name: String) async { self.sendDatagram(name, announce: true) }

    package func answerByDatagram(_ name: String) async { self.sendDatagram(name, announce: false) }

    private func sendDatagram(_ name: String, announce: Bool) {
        guard let parts = self.parts.withLock({ $0 }) else { return }
        parts.multicast?.send(MessageCoding.encode(self.description(name, parts, announce: announce)))
    }

    /// Returns this machine's description with its port, for devices that may call it.
    private func description(_ name: String, _ parts: Parts, announce: Bool? = nil) -> InfoMessage {
        InfoMessage(name: name, fingerprint: parts.certificate.fingerprint, port: parts.port, announce: announce)
    }

    // MARK: Requests

    private static let prefix = "/api/localsend/v2/"

    package func register(at address: PeerAddress, name: String) async throws(DeviceFailure) -> (PeerID, DeviceInfo) {
        let parts = try self.started()
        let (id, answer) = try await parts.client.post(
            Self.prefix + "register", .json(MessageCoding.encode(self.description(name, parts))), to: address, expecting: nil,
            answerTime: LocalSendLimits.shortAnswerTime)
        let message = try Self.decode(InfoMessage.self, from: answer)
        do throws(InvalidMessage) {
            return (id, try message.info)
        } catch {
            throw .invalid(error.description)
        }
    }

    package func offer(
        _ files: [DeviceFile], to target: DeviceTarget, name: String, pin: String?
    ) async throws(DeviceFailure) -> DeviceOfferAnswer {
        let parts = try self.started()
        let query = pin.map { "?pin=" + DeviceRoute.encoded($0) } ?? ""
        let message = OfferMessage(info: self.description(name, parts), files: files)
        let (_, answer) = try await parts.client.post(
            Self.prefix + "prepare-upload" + query, .json(MessageCoding.encode(message)), to: target.address, expecting: target.id,
            answerBytes: LocalSendLimits.offerAnswerBytes)
        if answer.status == 204 { return .nothingToSend }
        let accepted = try Self.decode(OfferAnswerMessage.self, from: answer)
        do throws(InvalidMessage) {
            return try accepted.answer(to: Set(files.map(\.id)))
        } catch {
            throw .invalid(error.description)
        }
    }

    package func upload(
        _ upload: DeviceUpload, size: UInt64, to target: DeviceTarget, body: any AsyncSequence<ByteBuffer, any Error> & Sendable
    ) async throws(DeviceFailure) {
        let query = [("sessionId", upload.session), ("fileId", upload.file), ("token", upload.token)]
        let text = query.map { "\($0)=\(DeviceRoute.encoded($1))" }.joined(separator: "&")
        let (_, answer) = try await self.started().client.post(
            Self.prefix + "upload?" + text, .upload(size: size, body), to: target.address, expecting: target.id)
        guard answer.status == 200 || answer.status == 204 else { throw .refused(status: answer.status) }
    }

    package func cancel(session: String, at target: DeviceTarget) async throws(DeviceFailure) {
        let (_, answer) = try await self.started().client.post(
            Self.prefix + "cancel?sessionId=" + DeviceRoute.encoded(session), .empty, to: target.address, expecting: target.id,
            answerTime: LocalSendLimits.shortAnswerTime)
        guard answer.status == 200 else { throw .refused(status: answer.status) }
    }

    private func started() throws(DeviceFailure) -> Parts {
        guard let parts = self.parts.withLock({ $0 }) else { throw .unreachable("LocalSend is not started") }
        return parts
    }

    /// Decodes the answer of a successful request.
    private static func decode<Message: Decodable>(_ type: Message.Type, from answer: ExchangeAnswer) throws(DeviceFailure) -> Message {
        guard answer.status == 200 else { throw .refused(status: answer.status) }
        do throws(DeviceRefusal) {
            return try MessageCoding.decode(type, from: answer.body)
        } catch {
            throw .invalid("the answer is not LocalSend's")
        }
    }
}
