import EarshotClient

// A program that uses this machine's daemon; there is none.
let client = ControlClient(socketPath: "/nowhere/earshot.sock")
do {
    let invitation = try await client.invite("bob", timeout: .seconds(60))
    let peer: PeerID = invitation.peerID
    try await client.setTrust(.trusted, of: peer, lasting: .seconds(3600))
    print(try await client.withdraw(invitation.id).state)
} catch {
    print("\(error)")
}
await client.shutdown()
