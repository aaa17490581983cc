import APIDocument
import Earshot
import EarshotClient
import EarshotWire
import Foundation
import NIOCore
import Synchronization
import Testing

@testable import earshotd

/// The limit on the rate of a file, in each way in which a caller can send one.
@Suite(.timeLimit(.minutes(1))) struct TransferLimitTests {
    enum Way: CaseIterable, Sendable {
        case path, body, descriptor, keptBody, keptDescriptor
    }

    /// The file's bytes take a second.
    @Test(arguments: Way.allCases) func aLimitedFileTakesItsTime(_ way: Way) async throws {
        try await APIServer.pair { alice, bob in
            try await alice.agree(with: bob)
            let size = 256 * 1024
            let path = "\(alice.place)/file"
            try Data(count: size).write(to: URL(fileURLWithPath: path))
            let descriptor = open(path, O_RDONLY | O_CLOEXEC)
            defer { close(descriptor) }
            let rate = UInt64(size)
            let start = ContinuousClock.now
            try await ControlClient.with(socketPath: alice.path) { client in
                let pieces = Mutex<ByteBuffer?>(ByteBuffer(repeating: 0, count: size))
                let body = AsyncStreamOfBytes { pieces.withLock { $0.take() } }
                let rows =
                    switch way {
                    case .path: try await client.sendResource(ControlAPI.ResourceRequest(to: ["bob"], path: path, limit: rate)).resources
                    case .body:
                        try await client.sendResource(to: .peer("bob"), name: "file", size: Int64(size), content: body, limit: rate)
                            .resources
                    case .descriptor: try await client.sendFile(descriptor, to: .peer("bob"), name: "file", limit: rate).resources
                    case .keptBody:
                        try await client.sendResource(
                            to: .peer("bob"), name: "file", size: Int64(size), content: body, limit: rate, queue: true
                        ).resources
                    case .keptDescriptor:
                        try await client.sendFile(descriptor, to: .peer("bob"), name: "file", limit: rate, queue: true).resources
                    }
                let id = try #require(rows.first?.id)
                for try await row in client.progress(of: id) where row.state == .known(.completed) { break }
            }
            #expect(ContinuousClock.now - start >= .seconds(1))
            #expect(await bob.node.resources().map(\.state) == [.completed])
        }
    }

    @Test func limitsOutsideTheRangeAreRefused() async throws {
        try await APIServer.pair { alice, bob in
            try await alice.agree(with: bob)
            let path = "\(alice.place)/file"
            try Data(count: 1).write(to: URL(fileURLWithPath: path))
            let api = APICaller(path: alice.path)
            let range = WireLimits.transferRate
            #expect(range == 1024...1_099_511_627_776)
            let limits = [
                (0, 400), (range.lowerBound - 1, 400), (range.lowerBound, 202), (range.upperBound, 202), (range.upperBound + 1, 400),
            ]
            for (limit, status) in limits {
                let answer = try await api.call("POST", "/v1/resources", json: #"{"to":["bob"],"path":"\#(path)","limit":\#(limit)}"#)
                #expect(answer.status == status, "\(limit): \(answer.text)")
            }
            for (limit, status) in [("0", 400), ("1023", 400), ("1024", 200), ("1099511627776", 200), ("1099511627777", 400), ("1M", 400)] {
                let answer = try await api.call("POST", "/v1/resources?to=bob&name=x&size=0&limit=\(limit)")
                #expect(answer.status == status, "\(limit): \(answer.text)")
            }
        }
    }

    /// The limits of the daemon are in the status, if there are any.
    @Test func theStatusShowsTheLimits() async throws {
        try await APIServer.with(configure: { $0.sendLimit = 10 << 20 }) { server in
            let status = try await APICaller(path: server.path).call("GET", "/v1/status")
            #expect(APIDocument.shared.faults(status.body, as: "Status") == [])
            try await ControlClient.with(socketPath: server.path) { client in
                let local = try await client.status().value.local
                #expect(local?.sendLimit == 10 << 20 && local?.receiveLimit == nil)
            }
        }
    }
}
