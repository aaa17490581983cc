import Glibc

/// The kernel's errors in words.
enum SystemError {
    /// Such as `connection refused`.
    static func reason(_ code: CInt) -> String {
        var buffer = [CChar](repeating: 0, count: 256)
        // The GNU strerror_r is not importable; the one of XSI fills the buffer.
        guard strerror_r(code, &buffer, buffer.count) == 0 else { return "error \(code)" }
        let text = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return text.prefix(1).lowercased() + text.dropFirst()
    }
}
