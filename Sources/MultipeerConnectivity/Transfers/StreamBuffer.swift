import Foundation
import NIOCore
import Synchronization

/// Bytes between a program's thread and the node: bounded, so that the slower side holds the faster one up.
final class StreamBuffer: Sendable {
    /// The most bytes that wait.
    static let capacity = 256 * 1024

    /// How the far end stands for the program.
    enum End: Equatable {
        case inOrder
        case broken(MCError)
    }

    private struct State {
        var bytes = ByteBuffer()
        /// No byte will be added.
        var isFinished = false
        /// No byte will be taken, and why.
        var end: End?
        var reader: CheckedContinuation<Void, Never>?
        var writer: CheckedContinuation<Void, Never>?
        /// Called once where it breaks.
        var broken: (@Sendable () -> Void)?
    }

    /// Guards the state, and wakes threads that wait.
    private let condition = NSCondition()
    private nonisolated(unsafe) var state = State()
    /// Told whenever the program may be able to go on.
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

    // MARK: What a thread does

    /// Adds up to as many bytes as there is room for, and waits for room for one; 0 where nobody takes any more, -1 where it broke.
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

    /// Takes bytes, and waits for one; 0 at the end, -1 where it broke before.
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

    /// Whether ``write(_:)`` would not wait.
    var hasRoom: Bool { self.change { $0.end != nil || $0.isFinished || $0.bytes.readableBytes < Self.capacity } }
    /// Whether ``read(into:)`` would not wait.
    var hasBytes: Bool { self.change { $0.bytes.readableBytes > 0 || $0.isFinished || $0.end != nil } }
    /// Whether all bytes were taken and no more will come.
    var isAtEnd: Bool { self.change { $0.bytes.readableBytes == 0 && ($0.isFinished || $0.end != nil) } }
    /// Why it broke.
    var error: MCError? {
        self.change { state in
            if case .broken(let error)? = state.end { error } else { nil }
        }
    }

    // MARK: What both do

    /// No byte will be added: whoever reads comes to the end.
    func finish() {
        let (reader, writer) = self.change { state in
            state.isFinished = true
            return (state.reader.take(), state.writer.take())
        }
        reader?.resume()
        writer?.resume()
        self.changed()
    }

    /// No byte will be taken, or none is to come: what waits is dropped where it broke.
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

    /// Has something done once where the stream breaks, or has broken.
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

    // MARK: What a task does

    /// Bytes that the program has written; `nil` at the end.
    /// - Throws: where the program has let go of the stream before its end; `CancellationError` where the task is cancelled, since nothing is sent
    ///   any more.
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

    /// Hands the program bytes, once it has taken most of those before; whether it still wants any.
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

    /// Waits until the program has taken everything, or wants no more.
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
