internal import Earshot
internal import EarshotClient

extension Tolerant {
    /// Creates the API's value of a library's value: both are spelt alike, which a test checks.
    init(_ value: some RawRepresentable<String>) {
        self.init(rawValue: value.rawValue)
    }
}

extension ControlAPI.Failure {
    /// Creates the API's value of a failure; `nil` without a failure.
    init?(code: EarshotError.Code?, message: String?) {
        guard let code else { return nil }
        self.init(code: Tolerant(code), message: message ?? code.rawValue)
    }
}
