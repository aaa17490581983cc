import Foundation
import Glibc
import Testing

@testable import EarshotCLI

@Suite struct DoctorFactsTests {
    @Test func listenersAreReadFromTheKernelsTables() {
        let table = """
              sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
               0: 00000000:B806 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0000000000000000 100 0 0 10 0
               1: 0100007F:0016 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0000000000000000 100 0 0 10 0
               garbage
            """
        let table6 = """
              sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid
               0: 00000000000000000000000000000000:B806 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4713 1
            """
        #expect(ListeningSockets(tables: [table, table6]).inodes == [47110: [4711, 4713]])
        #expect(ListeningSockets(tables: [""]).user(of: 47110) == .free)
        #expect(ListeningSockets(tables: [table]).user(of: 47110) == .unknown, "no process has that inode")
    }

    @Test func addressesOfOurOwn() {
        #expect(DoctorFacts.parts("10.0.0.7:47110")?.host == "10.0.0.7")
        #expect(DoctorFacts.parts("[2001:db8::7]:47110")?.host == "2001:db8::7")
        #expect(DoctorFacts.parts("[2001:db8::7]:47110")?.port == 47110)
        for none in ["127.0.0.1:47110", "[::1]:47110", "[fe80::1%eth0]:47110", "nonsense", "1.2.3.4:x"] {
            #expect(DoctorFacts.parts(none) == nil, "\(none)")
        }
    }

    @Test func theBusIsWhereTheEnvironmentSays() {
        #expect(DoctorFacts.Bus.path(address: nil) == "/run/dbus/system_bus_socket")
        #expect(DoctorFacts.Bus.path(address: "tcp:host=x;unix:guid=1,path=/tmp/bus") == "/tmp/bus")
        #expect(DoctorFacts.Bus.path(address: "unix:abstract=/tmp/x") == "/run/dbus/system_bus_socket")
    }

    @Test func programsAreRunAndRead() throws {
        let run = try #require(ToolRun.run("/bin/sh", ["-c", "echo out; echo err >&2; exit 3"]))
        #expect(run.status == 3 && run.output == Array("out\n".utf8) && run.errors == "err\n")
        let large = try #require(ToolRun.run("/bin/sh", ["-c", "head -c 1000000 /dev/zero; head -c 300000 /dev/zero >&2"]))
        #expect(large.status == 0 && large.output.count == 1_000_000)
        #expect(ToolRun.run("/nonexistent", []) == nil)
        #expect(ToolRun.find("sh", path: "relative:/bin") == "/bin/sh")
        #expect(ToolRun.find("no-such-program", path: nil) == nil)
    }

    @Test func aSocketThatNobodyServes() throws {
        let place = "/tmp/earshot-doctor-\(UUID().uuidString.prefix(8))"
        #expect(DoctorFacts.Socket.gather(given: place).state == .missing)
        _ = FileManager.default.createFile(atPath: place, contents: nil)
        defer { unlink(place) }
        #expect(DoctorFacts.Socket.gather(given: place).state == .notASocket)
        #expect(DoctorFacts.Socket.gather(given: place).choice == .option)
        #expect(DoctorFacts.Socket.gather(given: "/" + String(repeating: "x", count: 200)).state != .missing)
    }
}
