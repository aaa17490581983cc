import Foundation
import Glibc
import Testing

@testable import EarshotClient

@Suite struct StreamConnectionTests {
    /// After a socket is closed, another thread may get its descriptor number. Closing it twice would close that thread's file.
    @Test(arguments: ["nowhere", String(repeating: "x", count: 200)])
    func aConnectionThatFailsClosesItsSocketOnce(_ name: String) async throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent(name).path
        let lost = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<2 {
                group.addTask {
                    var lost = 0
                    for _ in 0..<10_000 {
                        let descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
                        sched_yield()
                        if close(descriptor) != 0 { lost += 1 }
                    }
                    return lost
                }
            }
            group.addTask {
                for _ in 0..<10_000 {
                    do throws(ControlError) {
                        _ = try StreamConnection(socketPath: path)
                        return 1
                    } catch {
                        guard case .unreachable = error else { return 1 }
                    }
                }
                return 0
            }
            return await group.reduce(0, +)
        }
        #expect(lost == 0)
    }
}
