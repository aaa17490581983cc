import EarshotCore
import EarshotWire
import NIOCore

/// Sending messages and resources to LocalSend devices, as commanded by the core.
extension Node {
    func ship(_ id: ShipmentID, _ shipment: DeviceShipment, to target: DeviceTarget, pin: String?, over devices: any DeviceTransport) {
        let report: @Sendable (ShipmentReport) -> Void = { [input] report in
            input.yield(.core(.device(.shipped(id, target.id, report))))
        }
        let shipper = DeviceShipper(devices: devices, target: target, name: self.deviceName(), pin: pin, report: report)
        let (stop, stopper) = AsyncStream<Never>.makeStream()
        self.shipmentStoppers[id] = stopper
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

    private func shipmentEnded(_ id: ShipmentID) { self.shipmentStoppers[id] = nil }

    func stopShipment(_ id: ShipmentID) { self.shipmentStoppers.removeValue(forKey: id)?.finish() }

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
            return { () async throws(EarshotError) in try ShippedFile.files(of: row, try await job.content(opened)) }
        }
    }
}
