import Foundation
import NIOCore
import Synchronization

/// A bounded buffer between a program's thread and the node, with which the slower side delays the faster one.
final class StreamBuffer: Sendable {
    /// The maximum number of waiting bytes.
    static let capacity = 256 * 1024

    /// The end of the stream for the program.
    enum End: Equatable {
        case inOrder
        case broken(MCError)
    }

    private struct State {
        var bytes = ByteBuffer()
        /// Whether no more bytes will be added.
        var isFinished = false
        /// The reason why no more bytes will be taken.
        var end: End?
        var reader: CheckedContinuation<Void, Never>?
        var writer: CheckedContinuation<Void, Never>?
        /// Called once if the stream breaks.
        var broken: (@Sendable () -> Void)?
    }

    /// Protects the state, and wakes up waiting threads.
    private let condition = NSCondition()
    private nonisolated(unsafe) var state = State()
    /// Called when the program may be able to continue.
    private let changed: @Sendable () -> Void

    init(changed: @escaping @Sendable () -> Void) { self.changed = changed }

    private func change<Result>(_ body: (inout State) -> Result) -> Result {
        self.condition.lock()
        defer {
            self.condition.broadcast()
            self.condition.unlock()
        }
        return body(&self.state)
    }

    // MARK: Calls from a thread

    /// Adds as many bytes as fit, and waits for room for at least one. Returns 0 if no more are taken, -1 if the stream is broken.
    func write(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard !bytes.isEmpty else { return 0 }
        self.condition.lock()
        while self.state.end == nil, !self.state.isFinished, self.state.bytes.readableBytes >= Self.capacity { self.condition.wait() }
        guard self.state.end == nil, !self.state.isFinished else {
            defer { self.condition.unlock() }
            return self.state.end == .inOrder ? 0 : -1
        }
        let count = min(bytes.count, Self.capacity - self.state.bytes.readableBytes)
        self.state.bytes.writeBytes(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        let reader = self.state.reader.take()
        self.condition.unlock()
        reader?.resume()
        return count
    }

    /// Takes bytes, and waits for at least one. Returns 0 at the end, -1 if the stream is broken.
    func read(into space: UnsafeMutableRawBufferPointer) -> Int {
        guard !space.isEmpty else { return 0 }
        self.condition.lock()
        while self.state.bytes.readableBytes == 0, !self.state.isFinished, self.state.end == nil { self.condition.wait() }
        let count = self.state.bytes.readableBytes == 0 ? 0 : min(space.count, self.state.bytes.readableBytes)
        if count > 0 {
            self.state.bytes.readWithUnsafeReadableBytes { bytes in
                space.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
                return count
            }
            self.state.bytes.discardReadBytes()
        }
        let isBroken = if case .broken? = self.state.end { count == 0 } else { false }
        let writer = self.state.writer.take()
        self.condition.unlock()
        writer?.resume()
        return isBroken ? -1 : count
    }

    /// Whether ``write(_:)`` would not block.
    var hasRoom: Bool { self.change { $0.end != nil || $0.isFinished || $0.bytes.readableBytes < Self.capacity } }
    /// Whether ``read(into:)`` would not block.
    var hasBytes: Bool { self.change { $0.bytes.readableBytes > 0 || $0.isFinished || $0.end != nil } }
    /// Whether all bytes were taken and no more will come.
    var isAtEnd: Bool { self.change { $0.bytes.readableBytes == 0 && ($0.isFinished || $0.end != nil) } }
    /// The error of a broken stream.
    var error: MCError? {
        self.change { state in
            if case .broken(let error)? = state.end { error } else { nil }
        }
    }

    // MARK: Calls from both

    /// Marks that no more bytes will be added. The reader then reaches the end.
    func finish() {
        let (reader, writer) = self.change { state in
            state.isFinished = true
            return (state.reader.take(), state.writer.take())
        }
        reader?.resume()
        writer?.resume()
        self.changed()
    }

    /// Ends the buffer: no more bytes will be taken or added. If the stream is broken, waiting bytes are dropped.
    func end(_ end: End) {
        let (reader, writer, broken) = self.change { state in
            if state.end == nil { state.end = end }
            return (state.reader.take(), state.writer.take(), state.end == .inOrder ? nil : state.broken.take())
        }
        reader?.resume()
        writer?.resume()
        broken?()
        self.changed()
    }

    /// Calls `act` once when the stream breaks, or immediately if it is broken.
    func whenBroken(_ act: @escaping @Sendable () -> Void) {
        let isBroken = self.change { state in
            guard case .broken? = state.end else {
                state.broken = act
                return false
            }
            return true
        }
        if isBroken { act() }
    }

    // MARK: Calls from a task

    /// Waits for bytes from the program and returns them; `nil` at the end.
    /// - Throws: an error if the program has released the stream before its end; `CancellationError` if the task is cancelled, because
    ///   nothing is sent any more.
    func next() async throws -> ByteBuffer? {
        while true {
            let step = self.change { state -> Result<ByteBuffer?, MCError>? in
                if case .broken(let error)? = state.end { return .failure(error) }
                if state.bytes.readableBytes > 0 {
                    defer { state.bytes = ByteBuffer() }
                    return .success(state.bytes)
                }
                return state.isFinished || state.end != nil ? .success(nil) : nil
            }
            if let step {
                self.changed()
                return try step.get()
            }
            try Task.checkCancellation()
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    let isLate = self.change { state -> Bool in
                        let isEmpty = state.bytes.readableBytes == 0 && !state.isFinished && state.end == nil
                        guard isEmpty, !Task.isCancelled else { return true }
                        state.reader = continuation
                        return false
                    }
                    if isLate { continuation.resume() }
                }
            } onCancel: {
                self.change { $0.reader.take() }?.resume()
            }
        }
    }

    /// Passes bytes to the program, after it has taken most of the earlier ones. Returns whether it wants more.
    func add(_ bytes: ByteBuffer) async -> Bool {
        while self.change({ $0.end == nil && $0.bytes.readableBytes >= Self.capacity }) {
            await withCheckedContinuation { continuation in
                let isLate = self.change { state -> Bool in
                    guard state.end == nil, state.bytes.readableBytes >= Self.capacity else { return true }
                    state.writer = continuation
                    return false
                }
                if isLate { continuation.resume() }
            }
        }
        let isWanted = self.change { state -> Bool in
            guard state.end == nil else { return false }
            state.bytes.writeImmutableBuffer(bytes)
            return true
        }
        self.changed()
        return isWanted
    }

    /// Waits until the program has taken everything or wants no more.
    func drained() async {
        while self.change({ $0.end == nil && $0.bytes.readableBytes > 0 }) {
            await withCheckedContinuation { continuation in
                let isLate = self.change { state -> Bool in
                    guard state.end == nil, state.bytes.readableBytes > 0 else { return true }
                    state.writer = continuation
                    return false
                }
                if isLate { continuation.resume() }
            }
        }
    }
}
