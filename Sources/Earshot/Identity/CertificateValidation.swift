import FoundationEssentials
import Synchronization

/// The validation of the certificates that one connection's other side has shown, against the authorities, once its key is proven.
///
/// TLS hands over the certificates, the connection's handler asks, the ``ChainExaminer`` answers, and none of them waits for another.
package final class CertificateValidation: Sendable {
    private enum State {
        /// Nothing is shown yet, or there are no authorities to ask.
        case empty
        case shown([[UInt8]])
        case pending([[UInt8]], key: [UInt8], answer: @Sendable (Date?) -> Void)
        case over
    }

    /// What becomes of a question.
    enum Question {
        /// There is nothing to ask: no authority speaks for this peer.
        case pointless
        /// The answer will be called.
        case pending
        /// Too many others wait for an answer.
        case refused
    }

    private let examiner: ChainExaminer?
    private let state = Mutex(State.empty)

    /// Without an examiner there are no authorities, and nothing is kept.
    package init(_ examiner: ChainExaminer? = nil) {
        self.examiner = examiner
    }

    /// Takes down what TLS has been shown, in DER, by the holder of a key that is not proven yet.
    func note(_ chain: [[UInt8]]) {
        guard self.examiner != nil else { return }
        self.state.withLock { $0 = .shown(chain) }
    }

    /// Asks until when an authority speaks for the holder of the key, which is proven: `nil` where none does. The answer comes once, from another thread,
    /// unless ``withdraw()`` comes before it; it is called under a lock, and must only pass it on.
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

    /// The connection has ended: no answer is of use, and the event loop that it would go to may be gone.
    func withdraw() {
        self.state.withLock { $0 = .over }
    }

    /// On the examiner's thread.
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
