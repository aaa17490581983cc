internal import Earshot

/// The PIN of a LocalSend device, as a request gives it.
enum DevicePIN {
    /// Returns a PIN of a permitted length; `nil` if the request gives none.
    static func checked(_ pin: String?) throws(APIProblem) -> String? {
        guard let pin, !pin.isEmpty else { return nil }
        let limit = EarshotLimits.devicePINLength.upperBound
        guard pin.unicodeScalars.count <= limit else { throw APIProblem(.invalidParameter, "`pin` has at most \(limit) characters") }
        return pin
    }
}
