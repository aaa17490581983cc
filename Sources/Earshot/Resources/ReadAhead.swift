internal import Dispatch
import EarshotWire
import NIOCore
import Synchronization

/// Reads a data connection's socket on a thread of its own, a few blocks ahead of the thread that hashes and writes them. The network
/// therefore does not wait while the file system allocates space.
final class ReadAhead: Sendable {
    /// The number of blocks. One is filled while another is written, and the others compensate for uneven speed.
    static let blocks = 4

    /// Safe, although the compiler cannot verify it: only one thread at a time uses a block. The reading thread uses it between `empty`
    /// and `filled`, the taking thread between `filled` and `empty`.
    private nonisolated(unsafe) let memory: UnsafeMutableRawBufferPointer
    private let pace: DataPace
    private let counts: Mutex<[Result<Int, EarshotError>]>
    /// Created with 0 and then raised, because Dispatch treats the release of a semaphore below its initial value as an error.
    private let empty = DispatchSemaphore(value: 0)
    private let filled = DispatchSemaphore(value: 0)
    private let isStopped = Atomic(false)

    private init(at pace: DataPace) {
        self.pace = pace
        self.memory = .allocate(byteCount: Self.blocks * EarshotLimits.readAheadBlock, alignment: 4096)
        self.counts = Mutex(Array(repeating: .success(0), count: Self.blocks))
        for _ in 0..<Self.blocks { self.empty.signal() }
    }

    deinit {
        self.memory.deallocate()
    }

    /// Passes every block to `take`, in order, on the calling thread, until the end of the transfer. The blocks are read at the rate of `pace`.
    /// - Throws: `not-connected` if the connection is lost, `protocol-violation`, any error of `take`; `unavailable` without a thread.
    static func read(
        _ reader: DataSocketReader, at pace: DataPace = .free, _ take: (UnsafeRawBufferPointer) throws(EarshotError) -> Void
    ) throws(EarshotError) {
        let ahead = ReadAhead(at: pace)
        let thread = try ThreadExecutor(name: "earshot-read", isBulk: true)
        defer {
            // If the thread still reads, nobody takes its blocks any more. The end of the socket wakes it, or the returned block does.
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
            let result = Result { () throws(EarshotError) in
                let block = self.block(place)
                let room = try self.pace.room(for: block.count)
                let count = try reader.receive(into: UnsafeMutableRawBufferPointer(rebasing: block[..<room]))
                self.pace.moved(count)
                return count
            }
            self.counts.withLock { $0[place] = result }
            self.filled.signal()
            guard case .success(1...) = result else { return }
            index &+= 1
        }
    }
}
