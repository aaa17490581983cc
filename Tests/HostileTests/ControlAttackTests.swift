import Foundation
import Testing

/// Attacks on the control socket. It is as hostile as the network: an admitted caller may send anything, and any other user may try to
/// connect.
extension HostileTests {
    @Suite struct Control {
        @Test("socket open to everyone: connections that come and go leave nothing") func comingAndGoing() throws {
            let daemon = try VictimDaemon()
            func comeAndGo(_ count: Int) throws { for _ in 0..<count { _ = try PlainSocket(path: daemon.socket) } }
            try comeAndGo(1_000)
            #expect(try daemon.call("GET", "/v1/status").status == 200)
            try Attack(daemon: daemon).run("connections to the control socket", count: Scale.of(100_000)) { _ in try comeAndGo(1) }
            #expect(try daemon.call("GET", "/v1/status").status == 200)
        }

        @Test("socket open to everyone: garbage, half a request, one byte at a time: only that connection dies")
        func garbageEndsItsOwnConnectionAlone() throws {
            let daemon = try VictimDaemon()
            let request = Array("GET /v1/status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".utf8)
            let slow = try PlainSocket(path: daemon.socket)
            let halves = try (0..<200).map { _ in try PlainSocket(path: daemon.socket) }
            for (number, half) in halves.enumerated() {
                half.send(Array(request.prefix(1 + number % (request.count - 1))))
                half.finishSending()
            }
            for byte in request.dropLast() { slow.send([byte]) }
            let noises: [[UInt8]] = [
                [0x16, 3, 1, 2, 0], [UInt8](repeating: 0, count: 4096), [UInt8](repeating: 0xFF, count: 65_536), Array("\r\n\r\n\r\n".utf8),
                Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8), Array("GET / HTTP/9.9\r\n\r\n".utf8),
                Array("GET /v1/status HTTP/1.1\r\nContent-Length: -1\r\n\r\n".utf8),
                Array("GET /v1/status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n".utf8),
                Array("POST /v1/invitations HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n".utf8),
            ]
            for noise in noises {
                let socket = try PlainSocket(path: daemon.socket)
                socket.send(noise, patience: 2)
                socket.finishSending()
                #expect(socket.receiveAll() != nil, "it is answered or closed: \(noise.prefix(8))")
            }
            #expect(try daemon.call("GET", "/v1/status").status == 200)
            slow.send([request[request.count - 1]])
            #expect(slow.receive()?.starts(with: Array("HTTP/1.1 200".utf8)) == true, "who is slow is served all the same")
            #expect(daemon.isAlive)
        }

        @Test("socket open to everyone: a body that never ends is cut off") func anEndlessBodyIsCutOff() throws {
            let daemon = try VictimDaemon()
            let lengths = ["Transfer-Encoding: chunked", "Content-Length: 9223372036854775807", "Content-Length: 104857600"]
            let blanks = [UInt8](repeating: 32, count: 65_536)
            // Sends until the daemon closes the connection.
            var body: PlainSocket?
            try Attack(daemon: daemon, memoryLimit: 48 << 20).run("endless bodies", count: lengths.count * 1_000) { number in
                let length = lengths[number / 1_000]
                if number % 1_000 == 0 {
                    let socket = try PlainSocket(path: daemon.socket)
                    let head = "POST /v1/invitations HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\(length)\r\n\r\n"
                    socket.send(Array(head.utf8))
                    body = socket
                }
                guard let socket = body else { return }
                let chunk = length.hasPrefix("T") ? Array("10000\r\n".utf8) + blanks + [13, 10] : blanks
                guard !socket.send(chunk, patience: 2) || number % 1_000 == 999 else { return }
                let answer = String(decoding: socket.receive() ?? [], as: UTF8.self)
                // If everything was sent before the answer was read, the connection may be reset and the answer lost.
                #expect(answer.isEmpty || answer.hasPrefix("HTTP/1.1 413"), "\(answer.prefix(100))")
                body = nil
            }
            #expect(try daemon.call("GET", "/v1/status").status == 200)
        }

        @Test("descriptor exhaustion: a flood of the control socket with 64 descriptors") func descriptorsOfControl() throws {
            let daemon = try VictimDaemon(descriptors: 64)
            var flood = try (0..<200).map { _ in try PlainSocket(path: daemon.socket) }
            // Waits a second, until the daemon has accepted as many as it can.
            try daemon.outlasts(&flood, settling: 1_000_000, "control socket without descriptors") {
                let status = try daemon.call("GET", "/v1/status").status
                #expect(status == 200)
            }
            #expect(daemon.isAlive)
        }

        @Test("header flood, rebinding, CSRF on the local API") func hostileHeadersAreRefused() throws {
            let daemon = try VictimDaemon()
            func answer(_ lines: [String], _ body: String = "") throws -> String {
                let socket = try PlainSocket(path: daemon.socket)
                socket.send(Array((lines.joined(separator: "\r\n") + "\r\nConnection: close\r\n\r\n" + body).utf8), patience: 2)
                return String(decoding: socket.receive() ?? [], as: UTF8.self).prefix(12).suffix(3).description
            }
            let get = "GET /v1/status HTTP/1.1"
            #expect(try answer([get, "Host: localhost"] + (0..<65_000).map { "a\($0): b" }) == "431")
            #expect(try answer([get, "Host: evil.example"]) == "403")
            #expect(try answer([get, "Host: localhost", "Origin: http://localhost"]) == "403")
            #expect(try answer([get]) == "403")
            let post = ["POST /v1/invitations HTTP/1.1", "Host: localhost", "Content-Type: text/plain", "Content-Length: 2"]
            #expect(try answer(post, "{}") == "415")
            #expect(daemon.isAlive)
        }

        @Test("socket open to everyone: another user is refused", .enabled(if: geteuid() == 0, "skipped: being another user needs root"))
        func anotherUserIsRefused() throws {
            let daemon = try VictimDaemon()
            #expect(try self.asNobody("GET", "/v1/status", daemon) == 7, "curl's word for a connection that is refused")
            // Even if the directory and the socket admit every user, the kernel tells the caller's identity.
            for path in [daemon.place, daemon.socket] { chmod(path, 0o777) }
            #expect(try self.asNobody("GET", "/v1/status", daemon, expecting: "forbidden") == 0)
            let json = #"{"to":["x"],"path":"/etc/shadow"}"#
            #expect(try self.asNobody("POST", "/v1/resources", daemon, json: json, expecting: "forbidden") == 0)
            #expect(daemon.isAlive)
        }

        /// Returns curl's exit code as the user nobody, or 1 if the answer does not contain the word.
        private func asNobody(
            _ method: String, _ path: String, _ daemon: VictimDaemon, json: String = "", expecting word: String = ""
        ) throws -> Int32 {
            let output = "\(daemon.place)/nobody"
            let script =
                "setpriv --reuid=65534 --regid=65534 --clear-groups curl -s -X \(method) -H 'Content-Type: application/json' -d '\(json)'"
                + " --unix-socket '\(daemon.socket)' http://localhost\(path) >'\(output)' 2>&1"
            let status = try VictimDaemon.run(script)
            guard status == 0 else { return status }
            return VictimDaemon.text(output).contains(word) ? 0 : 1
        }

        @Test("confused deputy: FIFOs, devices and links to them as files") func pathsOfPipesAndDevicesAreRefused() throws {
            let daemon = try VictimDaemon(settings: "[invitations]\nfrom_unknown = accept\n")
            let peer = try WirePeer(port: daemon.port).prove()
            _ = try peer.join()
            let place = daemon.place
            mkfifo("\(place)/fifo", 0o600)
            symlink("/dev/zero", "\(place)/link")
            symlink("\(place)/fifo", "\(place)/other")
            let began = ContinuousClock.now
            for path in ["\(place)/fifo", "/dev/zero", "/dev/tty", "\(place)/link", "\(place)/other", daemon.socket] {
                let answer = try daemon.call("POST", "/v1/resources", json: #"{"to":["\#(peer.id)"],"path":"\#(path)"}"#)
                #expect(answer.status == 422 || answer.status == 404, "\(path): \(answer)")
            }
            #expect(ContinuousClock.now - began < .seconds(10), "and nothing is waited for")
            #expect(daemon.isAlive)
        }
    }
}
