import Foundation

/// Sends a colour once it is together with all, and shows what it gets. Compiled with `ColorService.swift` of the tutorial.
final class Program: ColorServiceDelegate {
    private let name: String
    private let count: Int
    private var hasSpoken = false

    init(_ name: String, _ count: Int) {
        self.name = name
        self.count = count
    }

    func connectedDevicesChanged(manager: ColorService, connectedDevices: [String]) {
        show("connected \(connectedDevices.count)")
        guard connectedDevices.count == self.count - 1, !self.hasSpoken else { return }
        self.hasSpoken = true
        manager.send(colorName: "hello from \(self.name)")
    }

    func colorChanged(manager: ColorService, colorString: String) { show("\(colorString)") }

    private func show(_ line: String) { FileHandle.standardOutput.write(Data("\(line)\n".utf8)) }
}

let words = CommandLine.arguments
let program = Program(words[1], Int(words[2]) ?? 0)
let service = ColorService()
service.delegate = program
dispatchMain()
