internal import CLinux
internal import EarshotSafety
internal import Glibc
internal import NIOCore
internal import NIOPosix

/// Settings of the process that the daemon makes before anything else runs.
enum ProcessSetup {
    /// The number of heap arenas. The C library's default is eight per core, and memory that a thread has freed in one arena is not
    /// available in the others.
    private static let heapArenas: CInt = 2
    /// The size, in bytes, from which an allocation is mapped separately and returned when it is freed. By default, the C library raises
    /// this value to the largest allocation that was freed, and keeps twice as much in every arena. The value is above the size of bulk
    /// data blocks, which are reused all the time.
    private static let mappedAllocation: CInt = 1024 * 1024
    /// The free bytes that remain at the end of an arena.
    private static let spareHeap: CInt = 1024 * 1024

    /// The files that the daemon opens at its start, with room for some connections.
    static let descriptors = 40
    /// The number of threads: the Architecture article lists the threads of an idle daemon and the threads that are started on demand.
    static let threads = 32

    static func apply() throws(ProcessLimitError) {
        // New files and sockets are accessible only to their owner from the start.
        umask(0o077)
        earshot_bound_heap(self.heapArenas, self.mappedAllocation, self.spareHeap)
        // A client that goes away must cause an error of its connection, not end the process.
        signal(SIGPIPE, SIG_IGN)
        try ProcessLimits.require(descriptors: self.descriptors, threads: self.threads)
    }

    /// Called after the process is confined, and before it starts concurrent work. The control API's connections share one event loop.
    static func makeThreads() {
        NIOSingletons.groupLoopCountSuggestion = 1
        earshot_run_tasks(CInt(clamping: max(2, System.coreCount)))
    }
}
