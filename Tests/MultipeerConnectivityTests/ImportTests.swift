import MultipeerConnectivity
import Testing

/// Code that imports this module alone, as most code for Apple's systems does.
@Suite struct ImportTests {
    @Test func foundationComesWithTheModule() {
        let data: Data = Data("hello".utf8)
        let url: URL = URL(fileURLWithPath: "/")
        let error = NSError(domain: MCErrorDomain, code: MCError.Code.notConnected.rawValue)
        let queue: DispatchQueue = .main
        #expect(data.count == 5 && url.isFileURL && error.code == 1 && queue.label == DispatchQueue.main.label)
    }
}
