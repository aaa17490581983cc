package import FoundationEssentials
package import Logging
import Synchronization

/// Has the authorities look at the chains that peers have shown: one after the other, on a thread of its own.
///
/// A signature of P-521 or of a long RSA key takes a millisecond or more, and any stranger with a key can ask for some. On an event loop, or on
/// the pool of which there are as many threads as cores, that would hold up everything else; here it holds up only other chains. What waits
/// is bounded in number by ``EarshotLimits/waitingChains`` and each in bytes, and a connection that has ended leaves the queue without costing any work.
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

    // Queued work holds this object, so that none is left.
    deinit { self.executor.stop() }

    /// Queues the validation, which is answered from the thread; `false` where too many wait.
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
            // One line a connection, of most strangers: not for the ordinary log.
            self.logger.debug("no authority speaks for a peer's certificate", metadata: ["reason": "\(error)"])
            return nil
        }
    }
}
