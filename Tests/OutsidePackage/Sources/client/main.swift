import EarshotClient

// A program that uses this machine's daemon; there is none.
do {
    try await ControlClient.with(socketPath: "/nowhere/earshot.sock") { client in _ = try await client.status() }
} catch {
    print("\(error)")
}
