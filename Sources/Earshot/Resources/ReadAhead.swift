internal import Dispatch
import EarshotWire
import NIOCore
import Synchronization

/// Reads a data connection's socket on a thread of its own, a few blocks ahead of the thread that hashes and writes them, so that the
/// network does not wait while the file system makes room.
final class ReadAhead: Sendable {
    /// How many blocks there are: one is filled while one is written, and the others make up for uneven turns.
    static let blocks = 4

    /// Safe although the compiler cannot see it: a block is touched by one thread at a time, the reading one between `empty` and `filled`,
    /// the taking one between `filled` and `empty`.
    private nonisolated(unsafe) let memory: UnsafeMutableRawBufferPointer
    private let counts: Mutex<[Result<Int, EarshotError>]>
    /// Begins at 0 and is raised: Dispatch takes one that goes away below its first value for a mistake.
    private let empty = DispatchSemaphore(value: 0)
    private let filled = DispatchSemaphore(value: 0)
    private let isStopped = Atomic(false)

    private init() {
        self.memory = .allocate(byteCount: Self.blocks * EarshotLimits.readAheadBlock, alignment: 4096)
        self.counts = Mutex(Array(repeating: .success(0), count: Self.blocks))
        for _ in 0..<Self.blocks { self.empty.signal() }
    }

    deinit {
        self.memory.deallocate()
    }

    /// Hands every block to `take`, in order, on the calling thread, to the end of the transfer.
    /// - Throws: `not-connected` where the connection is lost, `protocol-violation`, and what `take` throws; `unavailable` without a thread.
    static func read(
        _ reader: DataSocketReader, _ take: (UnsafeRawBufferPointer) throws(EarshotError) -> Void
    ) throws(EarshotError) {
        let ahead = ReadAhead()
        let thread = try ThreadExecutor(name: "earshot-read", isBulk: true)
        defer {
            // Where it still reads, nothing takes any more: the socket's end wakes it, or the block that is given back.
            ahead.isStopped.store(true, ordering: .releasing)
            reader.socket.interrupt()
            ahead.empty.signal()
            thread.stop()
        }
        thread.run { ahead.fill(from: reader) }
        var index = 0
        while true {
            ahead.filled.wait()
            let place = index % Self.blocks
            let count = try ahead.counts.withLock { $0[place] }.get()
            guard count > 0 else { return }
            try take(UnsafeRawBufferPointer(rebasing: ahead.block(place)[..<count]))
            ahead.empty.signal()
            index &+= 1
        }
    }

    private func block(_ place: Int) -> UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(rebasing: self.memory[(place * EarshotLimits.readAheadBlock)...].prefix(EarshotLimits.readAheadBlock))
    }

    private func fill(from reader: DataSocketReader) {
        var reader = reader
        var index = 0
        while true {
            self.empty.wait()
            guard !self.isStopped.load(ordering: .acquiring) else { return }
            let place = index % Self.blocks
            let result = Result { () throws(EarshotError) in try reader.receive(into: self.block(place)) }
            self.counts.withLock { $0[place] = result }
            self.filled.signal()
            guard case .success(1...) = result else { return }
            index &+= 1
        }
    }
}
