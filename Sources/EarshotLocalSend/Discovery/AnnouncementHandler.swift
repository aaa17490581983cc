import Earshot
import EarshotCore
import EarshotWire
import NIOCore
import Synchronization

/// The numbers of dropped datagrams since the start.
final class DatagramCounts: Sendable {
    private let counts = Mutex(DroppedAnnouncements())

    var dropped: DroppedAnnouncements { self.counts.withLock { $0 } }

    func drop(_ drop: (inout DroppedAnnouncements) -> Void) { self.counts.withLock { drop(&$0) } }
}

/// Receives announcements from a multicast group, and reports those of other devices on this machine's networks.
final class AnnouncementHandler: ChannelInboundHandler {
    typealias InboundIn = AddressedEnvelope<ByteBuffer>

    /// This machine's fingerprint, in lower case.
    private let ownFingerprint: String
    private let links: CurrentLinks
    private let counts: DatagramCounts
    private let report: (DeviceInfo, PeerAddress, _ isAnswer: Bool) -> Void
    private var rate = DatagramRate()

    init(
        ownFingerprint: String, links: CurrentLinks, counts: DatagramCounts,
        report: @escaping (DeviceInfo, PeerAddress, _ isAnswer: Bool) -> Void
    ) {
        self.ownFingerprint = ownFingerprint.lowercased()
        self.links = links
        self.counts = counts
        self.report = report
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let datagram = self.unwrapInboundIn(data)
        let origin = UnprovenConnections.origin(datagram.remoteAddress) ?? []
        guard self.rate.admit(from: origin, at: context.eventLoop.now) else {
            self.counts.drop { $0.excess += 1 }
            return
        }
        guard datagram.data.readableBytes <= LocalSendLimits.datagramBytes, let (info, isAnswer) = Self.announcement(datagram.data),
            let address = PeerAddress(remote: datagram.remoteAddress, port: info.port ?? LocalSendLimits.port), self.links.permit(address)
        else {
            self.counts.drop { $0.malformed += 1 }
            return
        }
        guard info.fingerprint != self.ownFingerprint else { return }
        self.report(info, address, isAnswer)
    }

    /// Decodes a datagram. A description without `announce` wants an answer.
    private static func announcement(_ data: ByteBuffer) -> (DeviceInfo, isAnswer: Bool)? {
        do {
            let message = try MessageCoding.decode(InfoMessage.self, from: data)
            return (try message.info, message.announce == false)
        } catch {
            return nil
        }
    }

    /// A send to a closed port, or the loss of an interface, is reported here. The socket remains usable.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {}
}
