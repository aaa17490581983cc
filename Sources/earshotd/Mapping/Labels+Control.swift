internal import Earshot
internal import EarshotClient

extension Tolerant {
    /// The API's word for a value of the library: both spell them alike, and a test holds them to it.
    init(_ value: some RawRepresentable<String>) {
        self.init(rawValue: value.rawValue)
    }
}

extension ControlAPI.Failure {
    /// A failure with its words; `nil` where there is none.
    init?(code: EarshotError.Code?, message: String?) {
        guard let code else { return nil }
        self.init(code: Tolerant(code), message: message ?? code.rawValue)
    }
}
