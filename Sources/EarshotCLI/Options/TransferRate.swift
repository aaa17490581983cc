import ArgumentParser
import EarshotSafety
import EarshotWire

/// A limit on the rate of a transfer, written like a size of the settings: `512K`, `10M`.
struct TransferRate: Hashable, Sendable, ExpressibleByArgument {
    let bytesPerSecond: UInt64

    init?(argument: String) {
        guard case .bytes(let rate) = SizeText(argument), WireLimits.transferRate.contains(rate) else { return nil }
        self.bytesPerSecond = rate
    }
}
