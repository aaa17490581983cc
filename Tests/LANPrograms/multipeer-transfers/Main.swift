import Foundation

@main
struct Main {
    static func main() async {
        guard CommandLine.arguments.count == 3 else { return print("usage: multipeer-transfers NAME ROOM") }
        let (jobs, job) = AsyncStream<Job>.makeStream()
        let transfers = Transfers(name: CommandLine.arguments[1], room: CommandLine.arguments[2], jobs: job)
        Thread.detachNewThread {
            while let line = readLine() { transfers.run(line) }
            job.finish()
        }
        await withDiscardingTaskGroup { group in
            for await work in jobs { group.addTask { await work() } }
        }
    }
}
