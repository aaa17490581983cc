internal import ArgumentParser
internal import Earshot
internal import EarshotClient
internal import EarshotSafety
internal import EarshotWire
internal import FoundationEssentials

struct IdentityShowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "show", abstract: "Print this machine's peer id and its key.")

    @OptionGroup var options: PlaceOptions
    @Flag(name: .long, help: "Print JSON.")
    var json = false

    /// The values that are printed.
    struct Shown: Encodable {
        let peerID: String
        let key: String
        let fingerprint: String
        let certificates: Int
        let validUntil: Date
        let path: String

        private enum CodingKeys: String, CodingKey {
            case peerID = "peer_id"
            case key, fingerprint, certificates
            case validUntil = "valid_until"
            case path
        }
    }

    mutating func run() throws {
        let (loaded, own) = try self.options.loadForReading()
        let shown: Shown
        if let own, let certificate = loaded.settings.node.certificate {
            shown = Self.shown(own, path: certificate)
        } else {
            do throws(EarshotError) {
                guard let identity = try Identity.existing(in: loaded.stateDirectory) else {
                    throw EarshotError(.notFound, "")
                }
                shown = Self.shown(identity, path: loaded.stateDirectory + "/" + Identity.fileName)
            } catch {
                throw error.code == .notFound ? PlaceOptions.missing(loaded.stateDirectory) : PlaceOptions.failure(error)
            }
        }
        try Self.write(shown, json: self.json)
    }

    static func shown(_ identity: Identity, path: String) -> Shown {
        Shown(
            peerID: identity.id.description, key: identity.keyName, fingerprint: identity.fingerprint, certificates: identity.chain.count,
            validUntil: identity.validUntil, path: path)
    }

    static func write(_ shown: Shown, json: Bool) throws {
        guard !json else { return try EarshotDaemon.output(String(decoding: try ControlJSON.encode(shown), as: UTF8.self) + "\n") }
        try EarshotDaemon.output(
            """
            peer id      \(shown.peerID)
            key          \(shown.key)
            fingerprint  \(shown.fingerprint)
            certificate  valid until \(shown.validUntil.formatted(.iso8601))\(shown.certificates > 1 ? ", \(shown.certificates) in the chain" : "")
            file         \(shown.path.escapedForDisplay)

            """)
    }
}
