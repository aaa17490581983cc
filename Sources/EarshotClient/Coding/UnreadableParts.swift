import EarshotCoding
import Synchronization

/// The parts of one answer that a client could not read, as text. With this object, a decoder skips such parts instead of failing.
final class UnreadableParts: Sendable {
    /// The most parts that are listed; further ones are only counted.
    static let limit = 16

    private let state = Mutex<(words: [String], more: Int)>(([], 0))

    /// The parts: the field, the element, and the error.
    var words: [String] {
        self.state.withLock { state in state.words + (state.more > 0 ? ["\(state.more) more"] : []) }
    }

    /// Records the error of an unreadable part.
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
    /// The object that records unreadable parts; `nil` if they are errors.
    var unreadable: UnreadableParts? {
        CodingUserInfoKey(rawValue: UnreadableParts.name).flatMap { self[$0] as? UnreadableParts }
    }
}

extension UnreadableParts {
    /// The key of the object in the decoder's `userInfo`.
    static let name = "earshot.unreadable"
}
