import FoundationEssentials
import Synchronization

/// The validation of one connection's peer certificates against the authorities, once the peer's key is proven.
///
/// TLS passes on the certificates, the connection's handler asks, and the ``ChainExaminer`` answers. None of them waits for another.
package final class CertificateValidation: Sendable {
    private enum State {
        /// TLS has not presented a chain, or there are no authorities.
        case empty
        case shown([[UInt8]])
        case pending([[UInt8]], key: [UInt8], answer: @Sendable (Date?) -> Void)
        case over
    }

    /// The result of asking.
    enum Question {
        /// There is nothing to validate: no authority vouches for this peer.
        case pointless
        /// The answer will be called.
        case pending
        /// Too many other chains wait.
        case refused
    }

    private let examiner: ChainExaminer?
    private let state = Mutex(State.empty)

    /// Creates a validation. Without an examiner there are no authorities, and no chain is kept.
    package init(_ examiner: ChainExaminer? = nil) {
        self.examiner = examiner
    }

    /// Records the chain that TLS has received, in DER. The sender's key is not proven yet.
    func note(_ chain: [[UInt8]]) {
        guard self.examiner != nil else { return }
        self.state.withLock { $0 = .shown(chain) }
    }

    /// Asks until when an authority vouches for the holder of the proven key; `nil` if none does. `answer` is called once, on another
    /// thread, unless ``withdraw()`` comes first. It is called under a lock, and must only pass the result on.
    func ask(for key: [UInt8], answer: @escaping @Sendable (Date?) -> Void) -> Question {
        guard let examiner = self.examiner else { return .pointless }
        let hasChain = self.state.withLock { state in
            guard case .shown(let chain) = state else { return false }
            state = .pending(chain, key: key, answer: answer)
            return true
        }
        guard hasChain else { return .pointless }
        guard examiner.examine(self) else {
            self.withdraw()
            return .refused
        }
        return .pending
    }

    /// Withdraws the question when the connection has ended. The answer would be useless, and its event loop may be gone.
    func withdraw() {
        self.state.withLock { $0 = .over }
    }

    /// Validates the chain on the examiner's thread.
    func examine(_ validUntil: ([[UInt8]], [UInt8]) -> Date?) {
        let question: ([[UInt8]], [UInt8])? = self.state.withLock { state in
            guard case .pending(let chain, let key, _) = state else { return nil }
            return (chain, key)
        }
        guard let question else { return }
        let date = validUntil(question.0, question.1)
        self.state.withLock { state in
            guard case .pending(_, _, let answer) = state else { return }
            state = .over
            answer(date)
        }
    }
}
