internal import Earshot
internal import EarshotClient
internal import EarshotWire

extension ControlAPI.Verification {
    /// A comparison as the API shows it.
    init(_ verification: Verification) {
        self.init(
            peerID: verification.peerID.description, peerName: verification.peerName, state: Tolerant(verification.state),
            digits: verification.digits, error: ControlAPI.Failure(code: verification.error, message: verification.errorMessage),
            expiresAt: verification.expiresAt)
    }
}
