import Earshot
import EarshotCore
import EarshotWire
import NIOCore
import NIOHTTP1

/// A request, as the connection's task gets it.
struct DeviceRequest: Sendable {
    let route: DeviceRoute
    let sender: DeviceSender
    /// The declared length of the body.
    let length: Int?
    let body: RequestBody
}

/// A device's connection with at least one request, and the task that answers its requests in their order.
struct DeviceConnection: Sendable {
    let channel: any Channel
    let requests: AsyncStream<DeviceRequest>
    let answer: @Sendable (DeviceAnswer) -> Void

    /// Answers requests until the connection is closed, which cancels the current one.
    func serve(
        _ node: any DeviceRequests, own: PeerID, as description: @escaping @Sendable (String) -> InfoMessage, budget: BodyBudget
    ) async {
        await withDiscardingTaskGroup { group in
            group.addTask {
                for await request in self.requests {
                    let answer = await Self.answer(to: request, node, own, description, budget)
                    self.answer(answer)
                }
            }
            try? await self.channel.closeFuture.get()
            group.cancelAll()
        }
    }

    private static func answer(
        to request: DeviceRequest, _ node: any DeviceRequests, _ own: PeerID, _ description: @Sendable (String) -> InfoMessage,
        _ budget: BodyBudget
    ) async -> DeviceAnswer {
        do throws(DeviceRefusal) {
            switch request.route {
            case .info: return DeviceAnswer(.ok, body: MessageCoding.encode(description(await node.deviceName())))
            case .register:
                let info = try await budget.collect(request.body, length: request.length) { body throws(DeviceRefusal) in
                    try MessageCoding.decode(InfoMessage.self, from: body).checkedInfo
                }
                if request.sender.id != own { node.deviceRegistered(info, by: request.sender) }
                return DeviceAnswer(.ok, body: MessageCoding.encode(description(await node.deviceName())))
            case .offer(let pin):
                try await node.checkDevicePIN(pin, of: request.sender)
                let offer = try await budget.collect(request.body, length: request.length) { body throws(DeviceRefusal) in
                    try MessageCoding.decode(OfferMessage.self, from: body).checkedOffer
                }
                return DeviceAnswer(try await node.deviceOffered(offer, by: request.sender))
            case .upload(let upload):
                try await node.deviceUploads(upload, by: request.sender, body: request.body)
                return DeviceAnswer(.ok)
            case .cancel(let session):
                try await node.deviceCancels(session, by: request.sender)
                return DeviceAnswer(.ok)
            }
        } catch {
            return DeviceAnswer(error)
        }
    }
}

extension InfoMessage {
    /// The description of a sender, which is refused if it is not valid.
    fileprivate var checkedInfo: DeviceInfo {
        get throws(DeviceRefusal) {
            do throws(InvalidMessage) { return try self.info } catch { throw .invalid }
        }
    }
}

extension OfferMessage {
    fileprivate var checkedOffer: DeviceOffer {
        get throws(DeviceRefusal) {
            do throws(InvalidMessage) { return try self.offer } catch { throw .invalid }
        }
    }
}
