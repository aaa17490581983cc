import EarshotWire

/// The rates of transfers under the limits on bandwidth.
extension NodeCore {
    /// Divides the limits again after a transfer has become active or inactive, or after a change of the settings. A transfer that becomes
    /// active has its rate before its first byte.
    mutating func paceTransfers(afterSettings: Bool = false) {
        guard self.transfers.takeActivityChange() || afterSettings else { return }
        self.pace(.activeOutgoing, within: self.settings.sendLimit, afterSettings)
        self.pace(.activeIncoming, within: self.settings.receiveLimit, afterSettings)
    }

    private mutating func pace(_ active: TransferRecord.Facets, within total: UInt64?, _ afterSettings: Bool) {
        guard total != nil || afterSettings || self.transfers.hasLimits else { return }
        let ids = self.transfers.ids(active)
        let rates = BandwidthShares.rates(total, among: ids.map { self.transfers[$0]?.stored?.limit })
        for (id, rate) in zip(ids, rates) {
            guard let transfer = self.transfers[id], transfer.rate != rate else { continue }
            self.transfers.change(id) { $0.paced(at: rate) }
            self.emit(.transfer(id, .pace(rate)))
            // The mover reports the end of the data connection, and the rest comes over the control connection.
            if transfer.download.isReceivingData, !Self.takesData(at: rate) { self.closeData(TransferID(id)) }
        }
    }

    /// Returns the rate of an incoming transfer, or the rate that it will have once it is active.
    func receiveRate(of transfer: TransferRecord) -> UInt64? {
        guard let total = self.settings.receiveLimit else { return nil }
        let others = self.transfers.count(.activeIncoming) - (transfer.isActive ? 1 : 0)
        return max(total / UInt64(max(others, 0) + 1), EarshotLimits.smallestShare)
    }

    /// Whether a transfer with this rate is received over a data connection.
    static func takesData(at rate: UInt64?) -> Bool { rate.map { $0 >= EarshotLimits.receiveDataRate } ?? true }

    /// Returns the part of a window that a transfer with this rate gets.
    static func window(_ window: UInt64, at rate: UInt64?) -> UInt64 {
        guard let rate, rate < window else { return window }
        let paced = UInt64(Double(rate) * (EarshotLimits.pacedWindow / .seconds(1)))
        return min(window, max(paced, UInt64(EarshotLimits.smallestPaceStep)))
    }
}
