import Glibc

/// The kernel's errors as phrases.
enum SystemError {
    /// Returns a phrase such as `connection refused`.
    static func reason(_ code: CInt) -> String {
        var buffer = [CChar](repeating: 0, count: 256)
        // The GNU strerror_r cannot be imported; XSI's version fills the buffer.
        guard strerror_r(code, &buffer, buffer.count) == 0 else { return "error \(code)" }
        let text = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return text.prefix(1).lowercased() + text.dropFirst()
    }
}
