import Foundation
import Synchronization

/// The common part of a program's streams in both directions: the state, the delegate, and the run loops.
private final class StreamFace: Sendable {
    private struct State: @unchecked Sendable {
        var isOpen = false
        var isClosed = false
        /// Whether the delegate was told of the opening, and of the end.
        var isOpenTold = false
        var isEndTold = false
        weak var delegate: (any StreamDelegate)?
    }

    private let state = Mutex(State())
    let events: RunLoopEvents
    let buffer: StreamBuffer

    /// Creates the common part. `tell` is called on the stream's run loops, when something may have changed.
    init(tell: @escaping @Sendable () -> Void) {
        let events = RunLoopEvents(look: tell)
        self.events = events
        self.buffer = StreamBuffer { events.wake() }
    }

    var delegate: (any StreamDelegate)? {
        get { self.state.withLock { $0.delegate } }
        set {
            nonisolated(unsafe) let delegate = newValue
            self.state.withLock { $0.delegate = delegate }
        }
    }

    var isClosed: Bool { self.state.withLock { $0.isClosed } }
    var isUsable: Bool { self.state.withLock { $0.isOpen && !$0.isClosed } }

    func open() {
        self.state.withLock { $0.isOpen = true }
        self.events.wake()
    }

    /// Closes the stream. Nothing is reported afterwards. `settle` decides about the remaining bytes.
    func close(_ settle: (StreamBuffer) -> Void) {
        self.state.withLock { $0.isClosed = true }
        settle(self.buffer)
        self.events.end()
    }

    /// The status as far as it is common to both directions. An input stream may also be at its end.
    var status: Stream.Status {
        let (isOpen, isClosed) = self.state.withLock { ($0.isOpen, $0.isClosed) }
        if isClosed { return .closed }
        if self.buffer.error != nil { return .error }
        return isOpen ? .open : .notOpen
    }

    /// Returns the delegate of an open stream, after it was told of the opening.
    func listener(of stream: Stream) -> (any StreamDelegate)? {
        let (delegate, tellsOpening) = self.state.withLock { state -> ((any StreamDelegate)?, Bool) in
            guard state.isOpen, !state.isClosed else { return (nil, false) }
            defer { state.isOpenTold = true }
            return (state.delegate, !state.isOpenTold)
        }
        if tellsOpening { delegate?.stream(stream, handle: .openCompleted) }
        return delegate
    }

    /// Returns whether the end still has to be reported, which happens once.
    func tellsEnd() -> Bool {
        self.state.withLock { state in
            defer { state.isEndTold = true }
            return !state.isEndTold
        }
    }
}

/// Bytes that a program writes for a peer. A write blocks if the peer is slower, unless there is room.
final class PeerOutputStream: OutputStream {
    private let face: StreamFace
    var buffer: StreamBuffer { self.face.buffer }

    init() {
        let stream = WeakReference<PeerOutputStream>()
        self.face = StreamFace { stream.value?.tell() }
        super.init(toMemory: ())
        stream.value = self
    }

    required init(toMemory: ()) { preconditionFailure("PeerOutputStream: made by MCSession") }

    deinit {
        if !self.face.isClosed { self.buffer.end(.broken(MCError(.cancelled, "the stream was dropped before it was closed"))) }
    }

    override var delegate: (any StreamDelegate)? {
        get { self.face.delegate }
        set { self.face.delegate = newValue }
    }

    override func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) { self.face.events.schedule(in: aRunLoop, forMode: mode) }
    override func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) { self.face.events.remove(from: aRunLoop, forMode: mode) }

    override func open() { self.face.open() }
    override func close() { self.face.close { $0.finish() } }

    override var hasSpaceAvailable: Bool { self.face.isUsable && self.buffer.hasRoom }

    override func write(_ buffer: UnsafePointer<UInt8>, maxLength len: Int) -> Int {
        guard self.face.isUsable else { return -1 }
        let count = self.buffer.write(UnsafeRawBufferPointer(start: buffer, count: max(0, len)))
        if self.buffer.hasRoom { self.face.events.wake() }
        return count
    }

    override var streamError: (any Error)? { self.buffer.error }
    override var streamStatus: Stream.Status { self.face.status }

    private func tell() {
        guard let delegate = self.face.listener(of: self) else { return }
        if self.buffer.error != nil {
            if self.face.tellsEnd() { delegate.stream(self, handle: .errorOccurred) }
        } else if self.hasSpaceAvailable {
            delegate.stream(self, handle: .hasSpaceAvailable)
        }
    }
}

/// Bytes from a peer for a program. A read blocks, unless there are bytes.
final class PeerInputStream: InputStream {
    private let face: StreamFace
    var buffer: StreamBuffer { self.face.buffer }

    init() {
        let stream = WeakReference<PeerInputStream>()
        self.face = StreamFace { stream.value?.tell() }
        super.init(data: Data())
        stream.value = self
    }

    deinit { self.buffer.end(.broken(MCError(.cancelled, "the stream was dropped before its end"))) }

    override var delegate: (any StreamDelegate)? {
        get { self.face.delegate }
        set { self.face.delegate = newValue }
    }

    override func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) { self.face.events.schedule(in: aRunLoop, forMode: mode) }
    override func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) { self.face.events.remove(from: aRunLoop, forMode: mode) }

    override func open() { self.face.open() }

    /// Closes the stream, and drops the unread bytes.
    override func close() {
        self.face.close { $0.end($0.isAtEnd ? .inOrder : .broken(MCError(.cancelled, "the reader has closed the stream"))) }
    }

    override var hasBytesAvailable: Bool { self.face.isUsable && self.buffer.hasBytes }

    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
        guard self.face.isUsable else { return -1 }
        let count = self.buffer.read(into: UnsafeMutableRawBufferPointer(start: buffer, count: max(0, len)))
        if self.buffer.hasBytes { self.face.events.wake() }
        return count
    }

    override func getBuffer(
        _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length len: UnsafeMutablePointer<Int>
    ) -> Bool { false }

    override var streamError: (any Error)? { self.buffer.error }

    override var streamStatus: Stream.Status {
        let status = self.face.status
        return status == .open && self.buffer.isAtEnd ? .atEnd : status
    }

    private func tell() {
        guard let delegate = self.face.listener(of: self) else { return }
        if self.buffer.isAtEnd || self.buffer.error != nil {
            if self.face.tellsEnd() { delegate.stream(self, handle: self.buffer.error == nil ? .endEncountered : .errorOccurred) }
        } else if self.hasBytesAvailable {
            delegate.stream(self, handle: .hasBytesAvailable)
        }
    }
}
