import ArgumentParser
import Earshot
import Foundation

/// Reads live and delivered messages from the event log as a program that embeds the library does, and prints how many came a second.
struct ReceiveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "receive")

    @Argument var port: UInt16
    @Option(help: "It ends when the sender has said so many times that it is done.") var rounds = 1
    @Option var encryption = "required"

    func run() async throws {
        let rounds = self.rounds
        try await BenchmarkNode.with("receiver", port: self.port, encryption: .init(named: self.encryption)) { node in
            var events = node.events.subscribe()
            say("ready")
            var received = 0
            var missed: UInt64 = 0
            var began: ContinuousClock.Instant?
            var last = ContinuousClock.now
            var done = 0
            while done < rounds {
                let batch = await events.next(upTo: 4096)
                guard !batch.isEmpty else { return }
                for event in batch {
                    switch event.kind {
                    case .messageReceived(let message) where message.contentType == SendCommand.endType:
                        let seconds = began.map { (last - $0) / .seconds(1) } ?? 0
                        say("\(seconds > 0 ? Int(Double(received) / seconds) : 0) \(received) \(missed)")
                        (received, missed, began) = (0, 0, nil)
                        done += 1
                    case .messageReceived:
                        if began == nil { began = .now }
                        received += 1
                    case .gap(let range): missed += UInt64(range.count)
                    default: break
                    }
                }
                if done < rounds, received > 0 { last = .now }
            }
        }
    }
}
