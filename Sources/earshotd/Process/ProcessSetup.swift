internal import CLinux
internal import EarshotSafety
internal import Glibc
internal import NIOCore
internal import NIOPosix

/// What a daemon arranges for itself before anything else runs.
enum ProcessSetup {
    /// Arenas of the heap: the C library makes eight a core, and what one thread has freed in one of them no other thread gets.
    private static let heapArenas: CInt = 2
    /// Allocations of at least so many bytes are mapped by themselves and given back when they are freed. Left alone, the C library raises
    /// this to the largest that it has seen freed, and twice that stays in every arena. Above the blocks in which bulk moves, which are
    /// reused again and again.
    private static let mappedAllocation: CInt = 1024 * 1024
    /// Free bytes that stay at the end of an arena.
    private static let spareHeap: CInt = 1024 * 1024

    /// Files that the daemon opens in its first moments, and room for some connections.
    static let descriptors = 40
    /// Threads: the Architecture article lists those of a daemon at rest and those that come with work.
    static let threads = 32

    static func apply() throws(ProcessLimitError) {
        // Files and sockets are their owner's alone from their first moment.
        umask(0o077)
        earshot_bound_heap(self.heapArenas, self.mappedAllocation, self.spareHeap)
        // A client that goes away is an error of its connection, not of the process.
        signal(SIGPIPE, SIG_IGN)
        try ProcessLimits.require(descriptors: self.descriptors, threads: self.threads)
    }

    /// After the process is confined, and before it does anything at once. The control API's connections share one event loop.
    static func makeThreads() {
        NIOSingletons.groupLoopCountSuggestion = 1
        earshot_run_tasks(CInt(clamping: max(2, System.coreCount)))
    }
}
