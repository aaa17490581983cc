import Testing

extension HostileTests.Control {
    /// The memory of event readers is bounded even if they read nothing. Measured on a separate daemon, without other tests in the process.
    @Test("socket open to everyone: hundreds of readers of events that read nothing") func readersThatReadNothingCostLittleMemory() throws {
        let daemon = try VictimDaemon()
        let before = daemon.memory
        let request = Array("GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
        // The number of connections that a process may hold by default, less the descriptors that are open here.
        let readers = try (0..<900).map { _ in try PlainSocket(path: daemon.socket) }
        for reader in readers { reader.send(request) }
        for reader in readers {
            #expect(reader.receive().map { String(decoding: $0, as: UTF8.self).hasPrefix("HTTP/1.1 200") } == true)
        }
        let grown = daemon.memory - before
        #expect(grown < 96 << 20)
        #expect(try daemon.call("GET", "/v1/status").status == 200)
        print("measured: \(readers.count) event readers: memory +\(grown >> 10) KiB")
    }
}
