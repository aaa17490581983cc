internal import Earshot
internal import EarshotClient
internal import EarshotWire

extension ControlAPI.Verification {
    /// Creates the API's value of a comparison.
    init(_ verification: Verification) {
        self.init(
            peerID: verification.peerID, peerName: verification.peerName, state: Tolerant(verification.state),
            digits: verification.digits, error: ControlAPI.Failure(code: verification.error, message: verification.errorMessage),
            expiresAt: verification.expiresAt)
    }
}
