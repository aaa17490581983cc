package import FoundationEssentials
package import Logging
import Synchronization

/// Validates peers' certificate chains against the authorities, one after another, on a thread of its own.
///
/// A signature check of P-521 or a long RSA key takes a millisecond or more, and any stranger with a key can request some. On an event
/// loop, or on the cooperative pool with its one thread per core, these checks would delay everything else. Here they only delay other
/// chains. The number of waiting chains is limited by ``EarshotLimits/waitingChains``, and each is limited in bytes. A connection that has
/// ended leaves the queue without causing work.
package final class ChainExaminer: Sendable {
    private let authorities: CertificateAuthorities
    private let now: @Sendable () -> Date
    private let logger: Logger
    private let executor: ThreadExecutor
    private let waiting = Mutex(0)

    /// Starts the thread.
    package init(_ authorities: CertificateAuthorities, now: @escaping @Sendable () -> Date, logger: Logger) throws(EarshotError) {
        self.authorities = authorities
        self.now = now
        self.logger = logger
        self.executor = try ThreadExecutor(name: "earshot-chains", isBulk: true)
    }

    // Queued work retains this object, so the queue is empty now.
    deinit { self.executor.stop() }

    /// Queues a validation, which is answered from the thread. Returns `false` if too many wait.
    func examine(_ validation: CertificateValidation) -> Bool {
        let hasRoom = self.waiting.withLock { waiting in
            guard waiting < EarshotLimits.waitingChains else { return false }
            waiting += 1
            return true
        }
        guard hasRoom else { return false }
        self.executor.run {
            validation.examine { chain, key in self.validUntil(chain, key) }
            self.waiting.withLock { $0 -= 1 }
        }
        return true
    }

    private func validUntil(_ chain: [[UInt8]], _ key: [UInt8]) -> Date? {
        do {
            return try self.authorities.vouch(for: chain, key: key, at: self.now())
        } catch {
            // At debug level, because most strangers would cause one line per connection.
            self.logger.debug("no authority speaks for a peer's certificate", metadata: ["reason": "\(error)"])
            return nil
        }
    }
}
