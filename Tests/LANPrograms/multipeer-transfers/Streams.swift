import Foundation

/// A program's way to read or write a stream.
enum Way: String {
    /// By a delegate that a run loop calls.
    case loop
    /// On a thread that waits in each call.
    case thread
    /// On a thread that asks first whether a call would wait.
    case poll
}

/// A thread with a run loop, as a program's main thread is.
enum LoopThread {
    // A run loop's `add`, and what streams do with one, may be called from any thread.
    nonisolated(unsafe) static let loop: RunLoop = {
        let started = DispatchSemaphore(value: 0)
        // Set before the semaphore is signalled, and read after.
        nonisolated(unsafe) var loop = RunLoop.main
        Thread.detachNewThread {
            loop = RunLoop.current
            // Without anything to wait for, a loop ends.
            loop.add(Timer(timeInterval: 86_400, repeats: true) { _ in }, forMode: .default)
            started.signal()
            while true { _ = RunLoop.current.run(mode: .default, before: .distantFuture) }
        }
        started.wait()
        return loop
    }()
}

/// Writes a stream's pattern, in pieces, and closes it.
final class Writer: NSObject, StreamDelegate {
    private let output: OutputStream
    private let pattern: Pattern
    private let count: Int
    private let said: @Sendable (String) -> Void
    private var written = 0
    /// The writer, held as long as the run loop has to call it.
    private var held: Writer?

    init(_ output: OutputStream, _ pattern: Pattern, _ count: Int, said: @escaping @Sendable (String) -> Void) {
        self.output = output
        self.pattern = pattern
        self.count = count
        self.said = said
    }

    func start(_ way: Way) {
        guard way != .loop else {
            self.held = self
            self.output.delegate = self
            self.output.schedule(in: LoopThread.loop, forMode: .default)
            return self.output.open()
        }
        // The thread's own from here on.
        nonisolated(unsafe) let writer = self
        Thread.detachNewThread {
            writer.output.open()
            while writer.written < writer.count {
                while way == .poll, !writer.output.hasSpaceAvailable, writer.output.streamError == nil { usleep(500) }
                guard writer.piece() else { break }
            }
            writer.end()
        }
    }

    /// Writes a piece; whether it was taken.
    private func piece() -> Bool {
        let piece = Array(self.pattern.bytes(from: self.written, min(30_011, self.count - self.written)))
        let taken = self.output.write(piece, maxLength: piece.count)
        guard taken > 0 else { return false }
        self.written += taken
        return true
    }

    private func end() {
        let error = self.output.streamError
        self.output.close()
        self.said(error.map { "broke: \($0)" } ?? "\(self.written) bytes written")
        self.held = nil
    }

    func stream(_ stream: Stream, handle event: Stream.Event) {
        switch event {
        case .hasSpaceAvailable where self.written < self.count: if !self.piece() { self.end() }
        case .hasSpaceAvailable, .errorOccurred: self.end()
        default: break
        }
    }
}

/// Reads a stream to its end, and compares it.
final class Reader: NSObject, StreamDelegate {
    private let input: InputStream
    private let pattern: Pattern
    private let said: @Sendable (String) -> Void
    private var data = Data()
    private var space = [UInt8](repeating: 0, count: 10_007)
    private var isOpenTold = false
    private var held: Reader?

    init(_ input: InputStream, _ pattern: Pattern, said: @escaping @Sendable (String) -> Void) {
        self.input = input
        self.pattern = pattern
        self.said = said
    }

    func start(_ way: Way) {
        guard way != .loop else {
            self.held = self
            self.input.delegate = self
            self.input.schedule(in: LoopThread.loop, forMode: .default)
            return self.input.open()
        }
        // The thread's own from here on.
        nonisolated(unsafe) let reader = self
        Thread.detachNewThread {
            reader.input.open()
            repeat {
                while way == .poll, !reader.input.hasBytesAvailable { usleep(500) }
            } while reader.piece()
            reader.end()
        }
    }

    /// Reads a piece; whether there was one.
    private func piece() -> Bool {
        let count = self.input.read(&self.space, maxLength: self.space.count)
        guard count > 0 else { return false }
        self.data.append(contentsOf: self.space.prefix(count))
        return true
    }

    private func end() {
        self.said(self.input.streamError.map { "broke: \($0)" } ?? self.pattern.verdict(of: self.data))
        self.input.close()
        self.held = nil
    }

    func stream(_ stream: Stream, handle event: Stream.Event) {
        switch event {
        case .openCompleted: self.isOpenTold = true
        case .hasBytesAvailable where self.isOpenTold: _ = self.piece()
        case .endEncountered, .errorOccurred: self.end()
        default: self.said("event \(event.rawValue) out of turn")
        }
    }
}
