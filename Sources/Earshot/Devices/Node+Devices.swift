package import EarshotCore
import EarshotWaiting
import EarshotWire
import Logging
package import NIOCore
import Synchronization

/// The node's side of LocalSend: passes the requests of devices to the core, and carries out its effects by the transport.
extension Node: DeviceRequests {
    package func deviceName() -> String { self.configuration.displayName.description }

    // MARK: Reports

    package nonisolated func deviceAnnounced(_ info: DeviceInfo, from address: PeerAddress, isAnswer: Bool) {
        guard self.deviceDatagrams.take() else { return }
        self.input.yield(.deviceAnnounced(info, address, isAnswer: isAnswer))
    }

    package nonisolated func deviceRegistered(_ info: DeviceInfo, by sender: DeviceSender) {
        self.input.yield(.core(.device(.registered(info, sender))))
    }

    package nonisolated func deviceLinksChanged() { self.input.yield(.core(.device(.linksChanged))) }

    /// Passes on an announcement from one of this machine's own links.
    func handleAnnouncement(_ info: DeviceInfo, _ address: PeerAddress, _ isAnswer: Bool) {
        self.deviceDatagrams.done()
        guard self.deviceLinks.permit(address) else { return }
        self.handle(.device(.announced(info, from: address, isAnswer: isAnswer)))
    }

    // MARK: Requests

    package func checkDevicePIN(_ pin: String?, of sender: DeviceSender) async throws(DeviceRefusal) {
        _ = try await self.ask(.checkPIN(pin, sender, origin: sender.origin))
    }

    package func deviceOffered(_ offer: DeviceOffer, by sender: DeviceSender) async throws(DeviceRefusal) -> DeviceOfferAnswer {
        guard case .deviceOffer(let answer) = try await self.ask(.offer(offer, sender, origin: sender.origin)) else { throw .failed }
        return answer
    }

    package func deviceCancels(_ session: String?, by sender: DeviceSender) async throws(DeviceRefusal) {
        _ = try await self.ask(.cancel(session, sender))
    }

    package func deviceUploads(
        _ upload: DeviceUpload, by sender: DeviceSender, body: any AsyncSequence<ByteBuffer, any Error> & Sendable
    ) async throws(DeviceRefusal) {
        let feed = BodyFeed()
        // The core's effect for this call takes the body.
        let call = CallID(number: self.coreShell.lastCall + 1)
        self.deviceBodies[call] = feed
        defer { self.deviceBodies[call] = nil }
        _ = try await self.ask(.upload(upload, sender), body: (feed, body))
    }

    /// Makes a call for a device. If the task is cancelled, the device's connection is gone.
    private func ask(
        _ command: DeviceCommand, body: (feed: BodyFeed, bytes: any AsyncSequence<ByteBuffer, any Error> & Sendable)? = nil
    ) async throws(DeviceRefusal) -> Answer {
        let answered = OneShot<Answer>()
        let feed = body?.feed
        let call = self.call(.device(command)) { answer in
            feed?.close()
            answered.settle(answer)
        }
        let answer = await withTaskCancellationHandler {
            // The body belongs to the request, so that this task alone reads it.
            if let body { await body.feed.read(body.bytes) }
            return await answered.value()
        } onCancel: { [input] in
            input.yield(.core(.callerGone(call)))
        }
        switch answer {
        case .deviceRefusal(let refusal): throw refusal
        case .failure: throw .failed
        default: return answer
        }
    }

    // MARK: Effects

    func carryOut(_ effect: DeviceEffect) {
        guard let devices else { return self.failWithoutTransport(effect) }
        let name = self.deviceName()
        switch effect {
        case .announce: self.spawn { await devices.announce(name) }
        case .answerByDatagram: self.spawn { await devices.answerByDatagram(name) }
        case .register(let address):
            self.spawn { [input] in
                let result: Result<DeviceAnswer, DeviceFailure>
                do throws(DeviceFailure) {
                    let (id, info) = try await devices.register(at: address, name: name)
                    result = .success(DeviceAnswer(id: id, info: info))
                } catch {
                    result = .failure(error)
                }
                input.yield(.core(.device(.reached(address, result))))
            }
        case .reserve(let id, let files, let share):
            let allowance = self.allowance(share)
            self.spawn { [input, spool] in
                var failure: EarshotError?
                do throws(EarshotError) { try await spool.reserve(files, allowance) } catch { failure = error }
                input.yield(.core(.device(.reserved(id, failure))))
            }
        case .release(let ids): self.spawn { [spool] in await spool.release(ids) }
        case .deliver(let id, let message):
            let weight = Frame.weight(ofBody: message.body.readableBytes)
            let origin = StoreWork.Delivery.Origin.offer(id, of: message.senderID)
            self.enqueue(.deliver(StoreWork.Delivery(messages: [message], origin: origin, weight: weight)))
        case .ship(let id, let shipment, let target, let pin): self.ship(id, shipment, to: target, pin: pin, over: devices)
        case .stopShipment(let id): self.stopShipment(id)
        case .cancel(let session, let target):
            self.spawn { [logger] in
                do throws(DeviceFailure) {
                    try await devices.cancel(session: session, at: target)
                } catch {
                    logger.debug("a device was not told that its files are no longer wanted", metadata: ["reason": "\(error)"])
                }
            }
        }
    }

    private func failWithoutTransport(_ effect: DeviceEffect) {
        switch effect {
        case .register(let address): self.input.yield(.core(.device(.reached(address, .failure(.unreachable("LocalSend is off"))))))
        case .reserve(let id, _, _): self.input.yield(.core(.device(.reserved(id, .stopping))))
        case .deliver(let id, _): self.input.yield(.core(.device(.delivered(id, nil))))
        case .ship(let id, _, let target, _):
            self.input.yield(.core(.device(.shipped(id, target.id, .failed(.unreachable("LocalSend is off"))))))
        case .announce, .answerByDatagram, .release, .stopShipment, .cancel: break
        }
    }

    // MARK: Running

    /// Binds the ports of LocalSend. The node works without them.
    func listenToDevices() async {
        guard let devices, self.configuration.localSend.isEnabled, self.devicePort == nil else { return }
        do {
            self.devicePort = try await devices.start(self)
            self.deviceError = nil
        } catch {
            self.deviceError = (error as? EarshotError)?.message ?? "\(error)"
            self.logger.warning("cannot listen to LocalSend devices", metadata: ["error": "\(error)"])
        }
    }

    /// Serves devices in a job, until LocalSend is switched off or the node ends.
    func beginDevices() {
        guard let devices, self.devicePort != nil, self.deviceStopper == nil, !self.isStopping else { return }
        let (stop, stopper) = AsyncStream<Never>.makeStream()
        self.deviceStopper = stopper
        self.spawn {
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await devices.run() }
                group.addTask { for await _ in stop {} }
                await group.next()
                group.cancelAll()
            }
        }
    }

    /// Follows a change of the settings.
    func switchDevices(on isOn: Bool) {
        guard isOn else {
            self.deviceStopper?.finish()
            self.deviceStopper = nil
            self.devicePort = nil
            self.deviceError = nil
            return
        }
        self.spawn { [weak self] in
            await self?.listenToDevices()
            await self?.beginDevices()
        }
    }
}

/// The number of datagrams on their way to the node. Further ones are dropped, because anyone can send any number.
final class DeviceDatagrams: Sendable {
    private let count = Mutex(0)

    /// Whether there is room for another one.
    func take() -> Bool {
        self.count.withLock { count in
            guard count < EarshotLimits.waitingDeviceDatagrams else { return false }
            count += 1
            return true
        }
    }

    func done() { self.count.withLock { $0 = max(0, $0 - 1) } }
}

extension DeviceSender {
    /// The address that counts for limits.
    fileprivate var origin: [UInt8] { self.address.socketAddress.flatMap(UnprovenConnections.origin) ?? [] }
}
