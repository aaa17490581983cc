import MultipeerConnectivity

// A session that nobody is in. `Data` comes with the module, as on Apple's systems.
let peer = MCPeerID(displayName: "outside")
let session = MCSession(peer: peer, securityIdentity: nil, encryptionPreference: .required)
do {
    try session.send(Data("hello".utf8), toPeers: [MCPeerID(displayName: "nobody")], with: .reliable)
} catch MCError.notConnected {
    print("nobody is connected: \(session.connectedPeers.count)")
}
