import EarshotCoding
import Synchronization

/// What a client could not read of one answer, in words: with it a decoder goes on where it would give up without.
final class UnreadableParts: Sendable {
    /// The most that are spoken of one by one; the rest is counted.
    static let limit = 16

    private let state = Mutex<(words: [String], more: Int)>(([], 0))

    /// Which field of which element, and what is wrong with it.
    var words: [String] {
        self.state.withLock { state in state.words + (state.more > 0 ? ["\(state.more) more"] : []) }
    }

    /// Takes note of why a part cannot be read.
    func add(_ error: any Error) {
        self.state.withLock { state in
            guard state.words.count < Self.limit else {
                state.more += 1
                return
            }
            state.words.append((error as? DecodingError).map({ JSONProblem($0).description }) ?? "not of the expected form")
        }
    }
}

extension [CodingUserInfoKey: Any] {
    /// Where what cannot be read is noted; `nil` where it is an error.
    var unreadable: UnreadableParts? {
        CodingUserInfoKey(rawValue: UnreadableParts.name).flatMap { self[$0] as? UnreadableParts }
    }
}

extension UnreadableParts {
    /// By what the decoder knows it.
    static let name = "earshot.unreadable"
}
