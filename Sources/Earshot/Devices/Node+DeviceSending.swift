import EarshotCore
import EarshotWire
import NIOCore

/// Sending messages and resources to LocalSend devices, as commanded by the core.
extension Node {
    func ship(_ id: ShipmentID, _ shipment: DeviceShipment, to target: DeviceTarget, pin: String?, over devices: any DeviceTransport) {
        let report: @Sendable (ShipmentReport) -> Void = { [input] report in
            input.yield(.core(.device(.shipped(id, target.id, report))))
        }
        let pacer = TransferPacer()
        let shipper = DeviceShipper(devices: devices, target: target, name: self.deviceName(), pin: pin, pacer: pacer, report: report)
        let (stop, stopper) = AsyncStream<Never>.makeStream()
        self.shipments[id] = RunningShipment(resource: shipment.resource, stopper: stopper, pacer: pacer)
        let files = self.files(of: shipment)
        self.spawn { [weak self] in
            await withTaskGroup(of: Void.self) { group in
                group.addTask {
                    do throws(EarshotError) {
                        await shipper.ship(try await files())
                    } catch {
                        report(.sourceFailed(error))
                    }
                }
                group.addTask { for await _ in stop {} }
                await group.next()
                group.cancelAll()
            }
            await self?.shipmentEnded(id)
        }
    }

    private func shipmentEnded(_ id: ShipmentID) { self.shipments[id] = nil }

    func stopShipment(_ id: ShipmentID) { self.shipments.removeValue(forKey: id)?.stopper.finish() }

    /// Keeps the upload of a resource to a device at a rate. The core gives the rate once the device has accepted, while the first upload
    /// still connects.
    func paceShipment(of id: ResourceID, at rate: UInt64?) {
        self.shipments.values.first { $0.resource == id }?.pacer.pace(at: rate)
    }

    /// Returns the work that opens the content of an attempt.
    private func files(of shipment: DeviceShipment) -> @Sendable () async throws(EarshotError) -> [ShippedFile] {
        switch shipment {
        case .message(let id, let contentType, let body):
            return { [store] () async throws(EarshotError) in
                let loaded: ByteBuffer? = if let body { body } else { try await store.outboxBodies([id])[id] }
                guard let loaded else { throw EarshotError(.storage, "the message is not in the outbox any more") }
                return [ShippedFile(id, contentType: contentType, body: loaded)]
            }
        case .resource(let row, let source):
            let opened = self.openedSources.removeValue(forKey: row.id)?.take()
            // If the device is busy, the next attempt begins with the first byte of the same body.
            if case .body? = opened, let opened { self.openedSources[row.id] = OpenedContent(opened) }
            let job = UploadJob(
                row: row, source: source, held: self.heldFiles[row.id], spool: self.spool, state: TransferMoverState(), report: { _ in })
            return { () async throws(EarshotError) in try await ShippedFile.files(of: row, try await job.content(opened)) }
        }
    }
}

/// An attempt to send something to a device, while it is under way.
struct RunningShipment: Sendable {
    /// The resource; `nil` for a message.
    let resource: ResourceID?
    /// Ends the attempt.
    let stopper: AsyncStream<Never>.Continuation
    let pacer: TransferPacer
}

extension DeviceShipment {
    fileprivate var resource: ResourceID? {
        switch self {
        case .message: nil
        case .resource(let row, _): row.id
        }
    }
}
