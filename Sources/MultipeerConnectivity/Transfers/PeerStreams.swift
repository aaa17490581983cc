import Foundation
import Synchronization

/// What a program's end of a stream has in common in both directions.
private struct StreamFace: @unchecked Sendable {
    var isOpen = false
    var isClosed = false
    /// Whether the delegate was told of the opening, and of the end.
    var isOpenTold = false
    var isEndTold = false
    weak var delegate: (any StreamDelegate)?
}

/// Bytes that a program writes, on their way to a peer. Writing waits where the peer is slower, unless there is room.
final class PeerOutputStream: OutputStream {
    private let face = Mutex(StreamFace())
    private let events: RunLoopEvents
    let buffer: StreamBuffer

    init() {
        let stream = WeakReference<PeerOutputStream>()
        let events = RunLoopEvents { stream.value?.tell() }
        self.events = events
        self.buffer = StreamBuffer { events.wake() }
        super.init(toMemory: ())
        stream.value = self
    }

    required init(toMemory: ()) { preconditionFailure("PeerOutputStream: made by MCSession") }

    deinit {
        if !self.face.withLock({ $0.isClosed }) {
            self.buffer.end(.broken(MCError(.cancelled, "the stream was dropped before it was closed")))
        }
    }

    override var delegate: (any StreamDelegate)? {
        get { self.face.withLock { $0.delegate } }
        set {
            nonisolated(unsafe) let delegate = newValue
            self.face.withLock { $0.delegate = delegate }
        }
    }

    override func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) { self.events.schedule(in: aRunLoop, forMode: mode) }
    override func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) { self.events.remove(from: aRunLoop, forMode: mode) }

    override func open() {
        self.face.withLock { $0.isOpen = true }
        self.events.wake()
    }

    override func close() {
        self.face.withLock { $0.isClosed = true }
        self.buffer.finish()
        self.events.end()
    }

    override var hasSpaceAvailable: Bool { self.isUsable && self.buffer.hasRoom }

    override func write(_ buffer: UnsafePointer<UInt8>, maxLength len: Int) -> Int {
        guard self.isUsable else { return -1 }
        let count = self.buffer.write(UnsafeRawBufferPointer(start: buffer, count: max(0, len)))
        if self.buffer.hasRoom { self.events.wake() }
        return count
    }

    override var streamError: (any Error)? { self.buffer.error }

    override var streamStatus: Stream.Status {
        let face = self.face.withLock { $0 }
        if face.isClosed { return .closed }
        if self.buffer.error != nil { return .error }
        return face.isOpen ? .open : .notOpen
    }

    private var isUsable: Bool { self.face.withLock { $0.isOpen && !$0.isClosed } }

    private func tell() {
        let (delegate, tellsOpening) = self.face.withLock { face -> ((any StreamDelegate)?, Bool) in
            guard face.isOpen, !face.isClosed else { return (nil, false) }
            defer { face.isOpenTold = true }
            return (face.delegate, !face.isOpenTold)
        }
        guard let delegate else { return }
        if tellsOpening { delegate.stream(self, handle: .openCompleted) }
        guard self.buffer.error == nil else {
            let isFirst = self.face.withLock { face in
                defer { face.isEndTold = true }
                return !face.isEndTold
            }
            if isFirst { delegate.stream(self, handle: .errorOccurred) }
            return
        }
        if self.hasSpaceAvailable { delegate.stream(self, handle: .hasSpaceAvailable) }
    }
}

/// Bytes of a peer, for a program to read. Reading waits, unless there are some.
final class PeerInputStream: InputStream {
    private let face = Mutex(StreamFace())
    private let events: RunLoopEvents
    let buffer: StreamBuffer

    init() {
        let stream = WeakReference<PeerInputStream>()
        let events = RunLoopEvents { stream.value?.tell() }
        self.events = events
        self.buffer = StreamBuffer { events.wake() }
        super.init(data: Data())
        stream.value = self
    }

    deinit { self.buffer.end(.broken(MCError(.cancelled, "the stream was dropped before its end"))) }

    override var delegate: (any StreamDelegate)? {
        get { self.face.withLock { $0.delegate } }
        set {
            nonisolated(unsafe) let delegate = newValue
            self.face.withLock { $0.delegate = delegate }
        }
    }

    override func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) { self.events.schedule(in: aRunLoop, forMode: mode) }
    override func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) { self.events.remove(from: aRunLoop, forMode: mode) }

    override func open() {
        self.face.withLock { $0.isOpen = true }
        self.events.wake()
    }

    /// What has not been read is not wanted.
    override func close() {
        self.face.withLock { $0.isClosed = true }
        self.buffer.end(self.buffer.isAtEnd ? .inOrder : .broken(MCError(.cancelled, "the reader has closed the stream")))
        self.events.end()
    }

    override var hasBytesAvailable: Bool { self.isUsable && self.buffer.hasBytes }

    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
        guard self.isUsable else { return -1 }
        let count = self.buffer.read(into: UnsafeMutableRawBufferPointer(start: buffer, count: max(0, len)))
        if self.buffer.hasBytes { self.events.wake() }
        return count
    }

    override func getBuffer(
        _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length len: UnsafeMutablePointer<Int>
    ) -> Bool { false }

    override var streamError: (any Error)? { self.buffer.error }

    override var streamStatus: Stream.Status {
        let face = self.face.withLock { $0 }
        if face.isClosed { return .closed }
        if self.buffer.error != nil { return .error }
        guard face.isOpen else { return .notOpen }
        return self.buffer.isAtEnd ? .atEnd : .open
    }

    private var isUsable: Bool { self.face.withLock { $0.isOpen && !$0.isClosed } }

    private func tell() {
        let (delegate, tellsOpening) = self.face.withLock { face -> ((any StreamDelegate)?, Bool) in
            guard face.isOpen, !face.isClosed else { return (nil, false) }
            defer { face.isOpenTold = true }
            return (face.delegate, !face.isOpenTold)
        }
        guard let delegate else { return }
        if tellsOpening { delegate.stream(self, handle: .openCompleted) }
        guard self.buffer.isAtEnd || self.buffer.error != nil else {
            if self.hasBytesAvailable { delegate.stream(self, handle: .hasBytesAvailable) }
            return
        }
        let isFirst = self.face.withLock { face in
            defer { face.isEndTold = true }
            return !face.isEndTold
        }
        if isFirst { delegate.stream(self, handle: self.buffer.error == nil ? .endEncountered : .errorOccurred) }
    }
}
