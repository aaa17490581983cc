import Foundation
import MultiPeer

/// Says hello once it is together with all, and shows what it hears.
final class Program: MultiPeerDelegate {
    private let name: String
    private let count: Int
    private var hasSpoken = false

    init(_ name: String, _ count: Int) {
        self.name = name
        self.count = count
    }

    func multiPeer(connectedDevicesChanged devices: [String]) {
        show("connected \(devices.count)")
        guard devices.count == self.count - 1, !self.hasSpoken else { return }
        self.hasSpoken = true
        MultiPeer.instance.send(object: "hello from \(self.name)", type: 7)
    }

    func multiPeer(didReceiveData data: Data, ofType type: UInt32, from peerID: MCPeerID) {
        show("\(peerID.displayName): \(data.convert()) \(type)")
    }

    private func show(_ line: String) { FileHandle.standardOutput.write(Data("\(line)\n".utf8)) }
}

let words = CommandLine.arguments
let program = Program(words[1], Int(words[3]) ?? 0)
MultiPeer.instance.initialize(serviceType: words[2], deviceName: words[1])
MultiPeer.instance.delegate = program
MultiPeer.instance.autoConnect()
dispatchMain()
